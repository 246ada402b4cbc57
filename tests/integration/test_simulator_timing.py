"""Direction and size of the effects that the pricing model is built from, on real kernels."""

from __future__ import annotations

import os

import pytest
from simulated import Workbench

from ascend_gym.core.status import Status
from npu_daemon import processors
from npu_daemon.backends.simulator import SimulatorBackend

ADD = "AscendC::Add(yLocal, x1Local, x2Local, count);"
DOUBLE_BUFFER = {"BUFFER_NUM = 1": "BUFFER_NUM = 2"}
CORES = "platform.GetCoreNumAiv()"
# The compiler orders GetValue and SetValue with the other pipes, but not accesses by pointers.
NATIVE_ADD = """
    AscendC::PipeBarrier<PIPE_ALL>();
    T *a = (T *)x1Local.GetPhyAddr(), *b = (T *)x2Local.GetPhyAddr(), *c = (T *)yLocal.GetPhyAddr();
    for (uint32_t i = 0; i < count; i++) c[i] = a[i] + b[i];
    AscendC::PipeBarrier<PIPE_ALL>();"""
SCALAR_ADD = """
    for (uint32_t i = 0; i < count; i++) {
        yLocal.SetValue(i, (T)(x1Local.GetValue(i) + x2Local.GetValue(i)));
    }"""
ASSIGNED_ADD = """
    static_assert(AscendC::TOTAL_VEC_LOCAL_SIZE + AscendC::TMP_UB_SIZE == AscendC::TOTAL_UB_SIZE);
    for (uint32_t i = 0; i < count; i++) {
        yLocal(i) = x1Local(i);
        yLocal(i) += x2Local(i);
    }
    (yLocal(0) *= 1.0f) /= 1;
    yLocal(0) -= 0.0f;
    const auto bits = yLocal.template ReinterpretCast<int32_t>();
    (bits(1) ^= 5) ^= 5;
    if (bits(1)++ != --bits(1)) bits(1) %= 2;
    ((bits(1) |= 0) >>= 0) &= -1;"""


@pytest.fixture(scope="module")
def add(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), "add", "fp32_2048x1024")


def tile(length: int) -> dict[str, str]:
    return {"TILE_LENGTH = 2048": f"TILE_LENGTH = {length}"}


def blocks(count: int) -> dict[str, str]:
    return {CORES: str(count)}


def test_with_noise_the_profile_tells_the_noisy_duration(add: Workbench) -> None:
    noisy = add.evaluate(add.spec.baseline, noise=0.1).cases[0]
    assert noisy.profile is not None
    assert noisy.profile.task_duration_us == noisy.latency_us != add.latency_us()


def test_a_price_asked_for_before_the_verdict_is_the_same(
    add: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier = "AscendC::PipeBarrier<PIPE_ALL>();"
    racing = {ADD: NATIVE_ADD.replace(barrier, "")}
    candidates = [add.edited(kernel=edits) for edits in ({}, {ADD: ADD.replace("Add", "Sub")}, racing)]
    told, opened = [], []
    for ahead in (False, True, True):
        monkeypatch.setattr(processors, "none_waits", lambda ahead=ahead: ahead)
        told.append([add.evaluate(candidate).cases for candidate in candidates])
        opened.append(len(os.listdir("/proc/self/fd")))
    assert [cases[0].status for cases in told[0]] == [Status.OK, Status.INCORRECT, Status.RUNTIME_FAULT]
    assert told[0] == told[1] == told[2]
    # The last run's files may be held until the next one; those of each run would add up.
    assert opened[2] - opened[0] < 2 * len(candidates)


def test_room_in_ub_is_what_the_buffers_add_up_to(add: Workbench) -> None:
    edits: dict[str, str]
    for edits, buffers in (({}, 3), (DOUBLE_BUFFER, 6)):
        (case,) = add.evaluate(add.edited(kernel=edits)).cases
        assert case.ub_taken_bytes == buffers * 2048 * 4


def test_bank_conflicts_are_told_where_there_are_some(add: Workbench) -> None:
    """Sources 256 bytes apart modulo 512 lie in other groups, a result 64 KB further on in other banks."""
    first, second = (f"inQueueX{number}, BUFFER_NUM, tileLength * sizeof(T)" for number in (1, 2))
    lost = []
    for edits in ({}, {first: f"{first} + 256", second: f"{second} + 65536"}):
        (case,) = add.evaluate(add.edited(kernel=edits)).cases
        assert case.cores is not None
        lost.append(case.cores.bank_conflict_ratios.get("Add", 0.0))
    assert lost[1] == 0 < lost[0]


def test_more_cores_are_faster_until_all_are_busy(add: Workbench) -> None:
    one, eight, all_cores = (add.latency_us(tiling=blocks(count)) for count in (1, 8, 48))
    assert one / eight == pytest.approx(8, rel=0.15)
    assert eight / all_cores > 1.5


def test_blocks_beyond_the_cores_run_in_waves(add: Workbench) -> None:
    """Four waves do the same work with four times the launches: never faster, not many times slower."""
    assert 1.0 < add.latency_us(tiling=blocks(192)) / add.latency_us(tiling=blocks(48)) < 2.0


def test_holding_cores_back_never_pays(add: Workbench) -> None:
    """Cores do not work in step, so delaying each by its index cannot spread their load on memory."""
    held_back = "for (volatile int i = 0; i < (int)AscendC::GetBlockIdx() * 10; i = i + 1); op.Process();"
    assert add.latency_us(kernel={"op.Process();": held_back}) > 0.995 * add.latency_us()


def test_double_buffering_hides_copies(add: Workbench) -> None:
    assert add.latency_us() / add.latency_us(kernel=DOUBLE_BUFFER) > 1.03


def test_small_tiles_pay_latency_per_copy(add: Workbench) -> None:
    assert add.latency_us(tiling=tile(256)) / add.latency_us(tiling=tile(4096)) > 1.5


def test_a_full_barrier_costs_what_it_serialises(add: Workbench) -> None:
    barrier = {ADD: f"{ADD} AscendC::PipeBarrier<PIPE_ALL>();", **DOUBLE_BUFFER}
    assert add.latency_us(kernel=barrier) > 1.02 * add.latency_us(kernel=DOUBLE_BUFFER)


def test_scalar_code_never_beats_the_vector_unit(add: Workbench) -> None:
    """A loop over raw pointers costs about what the same loop over GetValue and SetValue costs."""
    vector = add.latency_us()
    native = add.latency_us(kernel={ADD: NATIVE_ADD})
    scalar = add.latency_us(kernel={ADD: SCALAR_ADD})
    assert native > 10 * vector
    assert native == pytest.approx(scalar, rel=0.3)
    assert add.latency_us(kernel={ADD: ASSIGNED_ADD}) > 1.2 * scalar  # reads what it has written


def test_copying_by_memcpy_is_not_free(add: Workbench) -> None:
    copy = "AscendC::DataCopyPad(x1Local, x1Gm[offset], copyParams, padParams);"
    by_hand = "__builtin_memcpy((void *)x1Local.GetPhyAddr(), x1Gm[offset].GetPhyAddr(), count * sizeof(T));"
    by_hand = f"AscendC::PipeBarrier<PIPE_ALL>(); {by_hand} AscendC::PipeBarrier<PIPE_ALL>();"
    assert add.latency_us(kernel={copy: by_hand}) > 5 * add.latency_us()


def test_rows_off_the_512_byte_grid_are_slower(add: Workbench) -> None:
    aligned = add.latency_us(tiling=tile(2048))
    assert add.latency_us(tiling=tile(2040)) > 1.005 * aligned


def test_the_profile_adds_up(add: Workbench) -> None:
    result = add.evaluate(add.spec.baseline)
    profile = result.cases[0].profile
    assert result.status is Status.OK
    assert profile is not None
    assert profile.block_dim == 48
    assert profile.gm_to_ub_bytes == 2 * profile.ub_to_gm_bytes == 2 * 2048 * 1024 * 4
    assert profile.aiv_mte2_instructions == 2 * profile.aiv_mte3_instructions
    assert profile.aiv_vec_instructions == profile.aiv_mte3_instructions
    assert 0 < profile.aiv_vec_ratio < profile.aiv_mte2_ratio < 1
    assert profile.aiv_time < profile.task_duration_us


def test_the_same_candidate_has_the_same_latency_to_the_last_bit(add: Workbench) -> None:
    assert add.latency_us(kernel=DOUBLE_BUFFER) == add.latency_us(kernel=DOUBLE_BUFFER)


def test_each_chip_prices_its_own_cores_and_bandwidth(add: Workbench) -> None:
    """Tiling asks the chip for its cores; half of the bandwidth shows in an operator that only moves data."""
    results = {
        chip: add.evaluate(add.spec.baseline, chip=chip) for chip in ("910B1", "910B2", "910B3", "910B4")
    }
    profiles = {chip: result.cases[0].profile for chip, result in results.items()}
    assert {chip: profile and profile.block_dim for chip, profile in profiles.items()} == {
        "910B1": 48, "910B2": 48, "910B3": 40, "910B4": 40
    }  # fmt: skip
    latency = {chip: result.latency_us or 0.0 for chip, result in results.items()}
    assert 0 < latency["910B1"] < latency["910B2"]
    assert 0 < latency["910B3"] < latency["910B4"] / 1.2
