"""The comparison with measurements: errors, summaries, ranks, and the order of pairs."""

from __future__ import annotations

import csv
from pathlib import Path
from types import ModuleType

import pytest
from benchmark_modules import FIDELITY, fidelity_benchmark


@pytest.fixture(scope="module")
def fidelity() -> ModuleType:
    """Return the benchmark as a module."""
    return fidelity_benchmark("fidelity")


@pytest.mark.parametrize("name", ["calibration", "kept aside"])
def test_every_measurement_has_a_program_and_a_source(fidelity: ModuleType, name: str) -> None:
    programs, measurements = fidelity.SETS[name]
    cases = {case.case_id for case in fidelity.load_cases(FIDELITY / programs)}
    with (FIDELITY / measurements).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["case_id"] for row in rows} == cases
    assert all(row["source_path"].endswith(".md") and float(row["value"]) > 0 for row in rows)


def _rows(fidelity: ModuleType, *values: tuple[float, float | None]) -> list[object]:
    return [
        fidelity.Row(f"c{index}", "family", fidelity.TASK_DURATION, "us", measured, simulated)
        for index, (measured, simulated) in enumerate(values)
    ]


def test_a_missing_figure_counts_as_disagreement(fidelity: ModuleType) -> None:
    summary = fidelity.summary_of(_rows(fidelity, (10.0, 11.0), (10.0, 14.0), (10.0, None), (10.0, 9.0)))
    assert (summary.rows, summary.missing) == (4, 1)
    assert summary.median_error == pytest.approx(0.1)
    assert summary.share_within_20_percent == 0.5


def test_pairs_count_when_they_go_the_measured_way(fidelity: ModuleType) -> None:
    rows = _rows(fidelity, (10.0, 5.0), (20.0, 6.0), (40.0, 5.5), (40.5, 1.0), (80.0, None))
    # (10, 20), (10, 40) right; (10, 40.5), (20, 40), (20, 40.5) wrong; (40, 40.5) no order; four with 80
    assert fidelity.ordered_pairs(rows) == (2, 9)


def test_no_case_is_fitted_to_and_kept_aside(fidelity: ModuleType) -> None:
    fitted, aside = (fidelity.load_measurements(FIDELITY / files[1]) for files in fidelity.SETS.values())
    assert not fitted.keys() & aside.keys()


def test_pairs_of_one_case_of_each_set_belong_to_the_later_set(fidelity: ModuleType) -> None:
    earlier = _rows(fidelity, (10.0, 5.0), (20.0, 4.0))
    report = fidelity.report_of(_rows(fidelity, (40.0, 6.0), (15.0, 7.0)), earlier)
    # 40 after 10 and 20, 15 after 10 right; 15 before 20 and 40 wrong; (10, 20) belongs to the earlier set
    assert report["pairs"] == {"right": 3, "total": 5}


def test_data_files_hold_zeros_or_one_number(fidelity: ModuleType, tmp_path: Path) -> None:
    case = fidelity.Case("id", "family", "p.asc", (), (("input/x.bin", 5),), (("input/n.bin", 2, -1),))
    case.write_data(tmp_path)
    assert (tmp_path / "input" / "x.bin").read_bytes() == bytes(5)
    assert (tmp_path / "input" / "n.bin").read_bytes() == b"\xff" * 16


def test_rank_correlation_knows_ties_and_direction(fidelity: ModuleType) -> None:
    assert fidelity.rank_correlation([(1, 10), (2, 20), (3, 30)]) == pytest.approx(1.0)
    assert fidelity.rank_correlation([(1, 30), (2, 20), (3, 10)]) == pytest.approx(-1.0)
    assert fidelity.rank_correlation([(1, 1), (2, 5), (3, 5), (4, 9)]) == pytest.approx(0.9486833)
    assert fidelity.rank_correlation([(1, 1)]) is None
