"""Reading what msprof op leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from cann_samples import basic_info, write_csv, write_several, write_single
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npu_daemon.cann.measurement import CLEANER, BillingError, split_windows
from npu_daemon.cann.msprof_files import (
    ProfileFormatError,
    bank_conflict_share,
    l2_hit_share,
    number,
    parse_rows,
    profile_of,
    read_tasks,
)


def test_one_kernel_in_the_folder_itself(tmp_path: Path) -> None:
    (task,) = read_tasks(write_single(tmp_path).parent)
    assert (task.name, task.op_type, task.duration_us, task.block_dim) == (
        "AddCustom_0",
        "AI_VECTOR_CORE",
        12.5,
        2,
    )
    assert l2_hit_share(task) == pytest.approx(0.125)
    assert bank_conflict_share(task) == pytest.approx(0.02)


def test_a_profile_has_means_over_cores_and_sums_of_bytes(tmp_path: Path) -> None:
    (task,) = read_tasks(write_single(tmp_path))
    profile = profile_of(task, 20.0)
    assert profile.task_duration_us == 20.0
    assert (profile.aiv_time, profile.aiv_vec_time, profile.aiv_vec_ratio) == (10.0, 5.0, 0.5)
    assert (profile.gm_to_ub_bytes, profile.ub_to_gm_bytes) == (2 * 64 * 1024, 2 * 32 * 1024)
    assert (profile.aiv_mte2_instructions, profile.aiv_total_cycles) == (16, 36000)
    assert (profile.aic_time, profile.aic_mac_ratio, profile.gm_to_l1_bytes) == (0.0, 0.0, 0)


def test_several_kernels_come_in_the_order_of_their_launch(tmp_path: Path) -> None:
    infos = [basic_info("A", duration_us=float(index + 1)) for index in range(12)]
    durations = [task.duration_us for task in read_tasks(write_several(tmp_path, infos, metrics=False))]
    assert durations == [float(index + 1) for index in range(12)]


def test_the_clock_is_read_where_it_is_told(tmp_path: Path) -> None:
    (task,) = read_tasks(write_single(tmp_path, basic_info(**{"Current Freq": 1200})))
    assert (task.current_mhz, task.rated_mhz) == (1200.0, 1800.0)
    (unknown,) = read_tasks(write_single(tmp_path, basic_info(**{"Current Freq": "NA"})))
    assert (unknown.current_mhz, unknown.rated_mhz) == (None, 1800.0)


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ({"Task Duration(us)": "fast"}, "Task Duration"),
        ({"Task Duration(us)": "nan"}, "Task Duration"),
        ({"Task Duration(us)": "-3"}, "Task Duration"),
        ({"Task Duration(us)": "0"}, "duration above 0"),
        ({"Task Duration(us)": "NA"}, "duration above 0"),
        ({"Block Dim": "2.5"}, "block dim"),
        ({"Op Name": ""}, "expected name"),
        ({"Current Freq": "inf"}, "Current Freq"),
    ],
)
def test_an_impossible_cell_is_refused(tmp_path: Path, cells: dict[str, object], complaint: str) -> None:
    with pytest.raises(ProfileFormatError, match=complaint):
        read_tasks(write_single(tmp_path, basic_info(**cells)))


def test_a_missing_file_and_a_missing_column_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileFormatError, match="left no OpBasicInfo"):
        read_tasks(tmp_path)
    write_csv(tmp_path / "OpBasicInfo.csv", [{"Op Name": "A"}])
    with pytest.raises(ProfileFormatError, match="Task Duration"):
        read_tasks(tmp_path)


def test_a_row_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = write_single(tmp_path) / "PipeUtilization.csv"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ProfileFormatError, match="interrupted"):
        read_tasks(tmp_path)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    output = write_single(tmp_path)
    (output / "Memory.csv").rename(tmp_path / "elsewhere")
    (output / "Memory.csv").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ProfileFormatError, match="expected a file"):
        read_tasks(output)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "OpBasicInfo.csv").write_bytes(content)
    with pytest.raises(ProfileFormatError):
        read_tasks(tmp_path)


@given(
    st.lists(
        st.sampled_from(["1", "2.5", "NA", "N/A", "", "-1", "1e400", "0x3", "１"]), min_size=3, max_size=3
    )
)
def test_a_cell_is_a_number_absent_or_refused(cells: list[str]) -> None:
    (row,) = parse_rows("a,b,c,d\n" + ",".join([*cells, "end"]) + "\n", ("a",), "here")
    for name, cell in zip("abc", cells, strict=True):
        if cell in {"-1", "1e400", "0x3", "１"}:
            with pytest.raises(ProfileFormatError, match="expected a number"):
                number(row, name, "here")
        else:
            assert number(row, name, "here") == (float(cell) if cell[:1].isdigit() else None)


def test_every_task_between_two_cleanings_is_billed(tmp_path: Path) -> None:
    infos = []
    for call in range(3):
        infos += [basic_info(f"{CLEANER}_0", 80.0), basic_info("A", 10.0 + call), basic_info("B", 5.0)]
        infos.append(basic_info("B", 1.0 * call + 1))
    windows = split_windows(read_tasks(write_several(tmp_path, infos, metrics=False)), 3)
    assert [window.billed_us for window in windows] == [16.0, 18.0, 20.0]
    assert {window.main.name for window in windows} == {"A"}


def test_calls_that_launch_nothing_or_differ_are_not_billed(tmp_path: Path) -> None:
    tasks = read_tasks(write_several(tmp_path, [basic_info(CLEANER), basic_info("A")], metrics=False))
    with pytest.raises(BillingError, match="launched nothing"):
        split_windows(tasks[1:], 1)
    with pytest.raises(BillingError, match=r"different kernels: \{'A': 1\}"):
        split_windows(tasks, 2)
