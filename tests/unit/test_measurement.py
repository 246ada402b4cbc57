"""Measurements in words: floors, launch apart from imbalance, waiting, and the pipes of all cores."""

import pytest
from conftest import make_spec, ok_result

from ascend_gym.core.append_log import canonical_json
from ascend_gym.core.records import CoreTimes, DeviceInfo, EvalResult, MeasureProtocol, Stall
from ascend_gym.search.llm.measurement import compared, describe_result
from ascend_gym.search.llm.sheets import sheets
from ascend_gym.suite.requests import request_for
from npu_daemon.simulator.target import target_sheet

SPEC = make_spec()
REQUEST = request_for(SPEC, SPEC.baseline, MeasureProtocol())
AIV = ("vec", "scalar", "mte2", "mte3")


def _result(chip="910B2", target=True, floor_us=None, cores=None, **profile):
    result = ok_result(REQUEST, 100.0)
    cases = [
        case.model_copy(
            update={
                "profile": case.profile.model_copy(update=profile),
                "floor_us": floor_us,
                "cores": cores,
            }
        )
        for case in result.cases
    ]
    device = DeviceInfo(
        backend="fake",
        chip=chip,
        toolchain_digest="0",
        sandbox="none",
        host="here",
        target=target_sheet(chip) if target else None,
    )
    return result.model_copy(update={"cases": tuple(cases), "device": device})


def test_the_floor_and_the_share_reached_are_told():
    text = describe_result(_result(floor_us=25.0))
    assert "- small: 50.00 us (no candidate can take less than 25.00 us: 50% reached)" in text
    assert "latency: 100.00 us, the geometric mean over the cases (no candidate can take less" in text
    assert "no candidate" not in describe_result(_result())


@pytest.mark.parametrize(("chip", "cores"), [("910B1", 48), ("910B2", 48), ("910B3", 40), ("910B4", 40)])
def test_cores_are_counted_by_chip(chip, cores):
    assert f"block dim 40 of {cores} vector cores" in describe_result(_result(chip))


def test_room_in_ub_is_told():
    taken = _result()
    taken = taken.model_copy(
        update={"cases": tuple(case.model_copy(update={"ub_taken_bytes": 4096}) for case in taken.cases)}
    )
    assert "; buffers take 4096 of 196608 bytes of UB\n" in describe_result(taken)
    assert "bytes of UB" not in describe_result(_result())


def test_bank_conflicts_are_told_by_instruction():
    ratios = {"Add": 0.02, "Mul": 0.25, "Exp": 0.001}
    text = describe_result(_result(cores=CoreTimes(slowest_us=40.0, bank_conflict_ratios=ratios)))
    assert "; bank conflicts in UB, by instruction: Mul=0.250, Add=0.020\n" in text
    assert "by instruction: none that count" in describe_result(_result(cores=CoreTimes(slowest_us=40.0)))
    assert "bank conflicts" not in describe_result(_result())


def test_without_a_target_nothing_is_said_of_cores_and_launch():
    text = describe_result(_result(target=False))
    assert "block dim 40\n" in text
    assert "empty launch" not in text


def test_launch_is_told_apart_from_imbalance():
    cores = CoreTimes(slowest_us=40.0, wait_ratios={"aiv_vec_wait_ratio": 0.25, "aiv_mte2_wait_ratio": 0.0})
    text = describe_result(_result(cores=cores, aiv_time=30.0, block_dim=24, task_duration_us=50.0))
    launch_us = {each.blocks: each.vector_us for each in target_sheet("910B2").launches}[24]
    assert f"an empty launch of 24 blocks takes {launch_us:.2f} us, {launch_us / 50:.0%} of it" in text
    assert "cores work 30.00 us on average, the slowest 40.00 us (25% lost)" in text
    assert "still run: aiv_vec_wait_ratio=0.250; " in text


def test_what_lies_between_known_launches_is_interpolated():
    eight, sixteen = target_sheet("910B2").launches[1:3]
    middle_us = (eight.vector_us + sixteen.vector_us) / 2
    assert f"launch of 12 blocks takes {middle_us:.2f} us" in describe_result(_result(block_dim=12))
    assert "empty launch" not in describe_result(_result(block_dim=960))


def test_waiting_of_all_pipes_and_sizes_of_copies_are_told():
    text = describe_result(_result(gm_to_ub_bytes=8192, aiv_mte2_instructions=4))
    assert "dominant pipe vec (50%); even the busiest pipe idles 50% of the time" in text
    assert "2048 bytes per MTE2 instruction (small)" in text
    busy = describe_result(_result(aiv_mte2_ratio=0.9, gm_to_ub_bytes=2**20, aiv_mte2_instructions=4))
    assert "dominant pipe mte2 (90%)" in busy
    assert "idles" not in busy
    assert "262144 bytes per MTE2 instruction (large)" in busy


def test_a_kernel_on_cube_cores_is_judged_by_their_pipes():
    idle = {f"aiv_{pipe}_ratio": 0.0 for pipe in AIV} | {f"aiv_{pipe}_time": 0.0 for pipe in AIV}
    text = describe_result(
        _result(
            aiv_time=0.0,
            aic_time=80.0,
            aic_fixpipe_ratio=0.93,
            aic_mac_ratio=0.4,
            block_dim=20,
            aiv_vec_instructions=0,
            aiv_mte2_instructions=0,
            aiv_mte3_instructions=0,
            **idle,
        )
    )
    assert "dominant pipe aic_fixpipe (93%)" in text
    assert "block dim 20 of 24 cube cores" in text
    assert "aiv_" not in text


def test_cases_are_compared_one_by_one():
    assert compared(ok_result(REQUEST, 50.0), ok_result(REQUEST, 100.0)) == (
        "small 50.00 -> 25.00 us; large 200.00 -> 100.00 us"
    )


def test_a_result_from_a_file_is_told_in_the_same_words():
    """Or a resumed run would ask other questions than the run that was broken off."""
    waits = {"aiv_vec_wait_ratio": 0.3, "aiv_mte2_wait_ratio": 0.2, "aiv_mte3_wait_ratio": 0.1}
    result = _result(cores=CoreTimes(slowest_us=120.0, wait_ratios=waits), floor_us=3.0)
    on_file = canonical_json(result.model_dump(mode="json"))
    assert describe_result(EvalResult.model_validate_json(on_file)) == describe_result(result)
    back = EvalResult.model_validate_json(on_file).device.target
    assert sheets(SPEC, SPEC.baseline, back) == sheets(SPEC, SPEC.baseline, target_sheet("910B2"))


def test_a_line_of_the_source_is_quoted_once():
    place = "DataCopy(UB->GM) at op_kernel/toy.cpp:9 `DataCopy(y, t, n);`"
    stalls = tuple(
        Stall(pipe=f"aiv_{pipe}", at=at, waits_for=waits_for, wait_ratio=0.5)
        for pipe, at, waits_for in (("mte3", place, "Exp"), ("mte2", "DataCopy(GM->UB)", place))
    )
    result = _result()
    cases = tuple(case.model_copy(update={"stalls": stalls}) for case in result.cases)
    text = describe_result(result.model_copy(update={"cases": cases}))
    assert text.count("toy.cpp:9") == 2 * len(cases)
    assert text.count("DataCopy(y, t, n)") == 1


def test_pauses_are_left_out_and_waits_explained_once():
    stall = Stall(pipe="aiv_vec", at="Exp at op_kernel/toy.cpp:9", waits_for="Add", wait_ratio=0.5)
    result = _result(cores=CoreTimes(slowest_us=40.0, wait_ratios={"aiv_vec_wait_ratio": 0.25}))
    cases = tuple(case.model_copy(update={"stalls": (stall,)}) for case in result.cases)
    result = result.model_copy(update={"cases": cases * 2})
    text = describe_result(result)
    assert text.count("aiv_vec_wait_ratio=0.250") == 2 * len(cases)
    assert text.count("the share of core time") == text.count("a pipe with little to do") == 1
    assert "toy.cpp" in text
    assert "toy.cpp" not in describe_result(result, pauses=False)
