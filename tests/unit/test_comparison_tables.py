"""The page of the comparison has the tables of the runs that are kept, and these are those of the stores."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from benchmark_modules import methods_benchmark
from stored_runs import search

from ascend_gym.sweep.run_reader import read_run
from ascend_gym.sweep.store import ResultsStore


@pytest.fixture
def tables() -> ModuleType:
    """Return the benchmark as a module."""
    return methods_benchmark("comparison_tables")


def test_the_page_has_the_tables_of_the_runs(tables: ModuleType) -> None:
    assert tables.page() == tables.PAGE.read_text("utf-8"), "run benchmarks/methods/comparison_tables.py"


def test_every_sample_has_all_its_runs(tables: ModuleType) -> None:
    counts = {sample: len(runs) for sample, runs in tables.read().items()}
    assert counts == {"core": 8 * 8 * 3, "variants": 3 * 8 * 3, "fifths": 120, "others": 120}


def test_kept_runs_are_those_of_the_store(
    tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "RUNS", tmp_path / "runs.csv")
    search(tmp_path / "run")
    with ResultsStore(tmp_path / "results.sqlite", write=True) as store:
        store.put(read_run(tmp_path / "run"))
    tables.collect({"mine": tmp_path / "results.sqlite"})
    ((run,),) = tables.read().values()
    assert (run.method, run.operator, run.seed) == ("best-of-n", "core/toy", 0)
    assert [run.curve.speedup_at(budget) for budget in range(5)] == [1, 1.25, 1.25, 1.25, 2]
    assert run.curve.evaluations == 4
