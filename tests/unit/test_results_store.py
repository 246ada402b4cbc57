"""The results store, filled from folders of real runs of the driver."""

import csv
import sqlite3

import pytest
from conftest import FakeEvaluator
from stored_runs import KERNELS, SPEC, beginning, search

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.status import Status
from ascend_gym.report.stored_runs import comparison_runs, curve_of_run, run_differences
from ascend_gym.search.journal import Journal
from ascend_gym.search.search_rules import Duplicates
from ascend_gym.suite.loader import load_operator
from ascend_gym.sweep.merge import ExportFormat, export, import_runs, merge_stores, run_folders
from ascend_gym.sweep.run_reader import read_run
from ascend_gym.sweep.run_records import EvaluationRecord
from ascend_gym.sweep.schema import SCHEMA_VERSION
from ascend_gym.sweep.store import ResultsStore, columns_of


@pytest.fixture
def store(tmp_path):
    with ResultsStore(tmp_path / "results.sqlite", write=True) as opened:
        yield opened


def _put(store, *folders):
    return import_runs(store, folders, lambda folder: None)


def curve_on_file(folder):
    stored = read_run(folder)
    return curve_of_run(stored.run, stored.evaluations)


def _everything(store):
    tables = ("runs", "evaluations", "sources", "sessions", "operators")
    return {table: sorted(store.query(f"SELECT * FROM {table}"), key=repr) for table in tables}


def test_a_run_is_stored_as_the_driver_saw_it(tmp_path, store):
    outcome = search(tmp_path / "run")
    _put(store, tmp_path / "run")
    (run,) = store.runs()
    assert (run.op_id, run.method, run.variant, run.seed, run.budget) == (
        *(SPEC.op_id, "best-of-n", "best-of-n", 0, 10),
    )
    assert (run.evaluations, run.stop_reason) == (4, "strategy_finished")
    assert run.speedup == outcome.speedup == pytest.approx(2.0)
    assert run.best_digest == outcome.best.digest
    steps = store.evaluations(run.run_id)
    for step, stored in zip(outcome.history, steps, strict=True):
        assert (stored.idx, stored.status, stored.candidate_digest) == (
            *(step.index, step.result.status.value, step.proposal.candidate.digest),
        )
        assert (stored.latency_us, stored.best_latency_us, bool(stored.improved)) == (
            *(step.result.latency_us, step.best_latency_us, step.improved),
        )
        assert stored.spent_evaluations == step.spent.evaluations
    assert [each.idx for each in store.incumbents(run.run_id)] == [0, 1, 4]


@pytest.mark.parametrize("duplicates", Duplicates)
def test_curves_from_the_store_are_those_of_the_journals(tmp_path, store, duplicates):
    search(tmp_path / "run", duplicates=duplicates)
    search(tmp_path / "failed", seed=1, evaluator=FakeEvaluator({0: Status.INCORRECT}))
    _put(store, tmp_path / "run", tmp_path / "failed")
    first, failed = store.runs()
    assert curve_of_run(first, store.evaluations(first.run_id)) == curve_on_file(tmp_path / "run")
    assert curve_of_run(failed, store.evaluations(failed.run_id)) == curve_on_file(tmp_path / "failed")
    assert first.evaluations == (4 if duplicates is Duplicates.CHARGED else 3)
    assert [run.curve.speedup_at(10) for run in comparison_runs(store, [first, failed])] == [
        first.speedup,
        1.0,
    ]


def test_costs_statuses_sources_and_provenance(tmp_path, store):
    outcome = search(tmp_path / "run")
    _put(store, tmp_path / "run")
    (run,) = store.runs()
    statuses = dict(store.query("SELECT status, evaluations FROM statuses"))
    assert statuses == {"ok": 3, "timeout": 1}
    ((tokens, usd),) = store.query("SELECT prompt_tokens + completion_tokens, usd FROM costs")
    assert (tokens, usd) == (4 * 1500, pytest.approx(4 * (1000 * 1 + 500 * 2) / 1e6))
    assert store.changed_files(run, outcome.best.digest) == {"op_kernel/toy.cpp": KERNELS[3]}
    assert store.baseline_files(run) is None  # nobody has installed the toy
    duplicate = store.evaluations(run.run_id)[3]
    assert (duplicate.duplicate_of, duplicate.detail, duplicate.cached) == (1, None, 1)
    assert store.result(duplicate)["cases"][0]["profile"]["block_dim"] == 40
    (session,) = store.sessions(run.run_id)
    assert len(session.code_digest) == len(session.prompts_digest) == 64
    assert '"pydantic":' in session.packages


def test_installed_operators_bring_their_level_and_their_files(tmp_path, store):
    spec = load_operator("core/add")
    settings = {"method": "m", "model": "offline", "seed": 0, "budget": 1, "duplicates": "charged"}
    with Journal(tmp_path) as journal:
        journal.header(spec, {**settings, "protocol": {"chip": "910B2"}})
    _put(store, tmp_path)
    (run,) = store.runs()
    operator = store.operator(run)
    assert (operator.level, operator.category, operator.cases) == (spec.level, spec.category, len(spec.cases))
    assert store.baseline_files(run) == spec.baseline.texts


def test_putting_a_run_again_changes_nothing(tmp_path, store):
    search(tmp_path / "run")
    assert _put(store, tmp_path / "run").changed == 1
    before = _everything(store)
    assert _put(store, tmp_path / "run").changed == 0
    assert _everything(store) == before


@pytest.mark.parametrize("lines", [1, 2, 3, 5, 8, 11])
def test_a_run_that_goes_on_adds_what_was_missing(tmp_path, store, lines):
    search(tmp_path / "whole")
    _put(store, beginning(tmp_path / "begun", tmp_path / "whole", lines))
    (begun,) = store.runs(finished=False)
    assert begun.steps == (lines - 1) // 2
    assert _put(store, tmp_path / "whole").changed == 1
    (run,) = store.runs(finished=True)
    assert (run.steps, len(store.evaluations(run.run_id))) == (5, 5)
    assert _put(store, tmp_path / "begun").changed == 0
    assert store.runs() == [run]


def test_a_baseline_that_the_infrastructure_failed_is_no_step(tmp_path, store):
    broken = FakeEvaluator(dict.fromkeys(range(3), Status.INFRA_ERROR))
    search(tmp_path / "run", evaluator=broken)
    _put(store, tmp_path / "run")
    assert store.runs(finished=False)[0].steps == 0
    search(tmp_path / "run")
    _put(store, tmp_path / "run")
    assert store.runs(finished=True)[0].steps == 5


def test_runs_that_contradict_each_other_are_refused_and_both_named(tmp_path, store):
    search(tmp_path / "here")
    search(tmp_path / "there", "// latency: 80\n", "// latency: 70\n")
    _put(store, tmp_path / "here")
    before = _everything(store)
    with pytest.raises(MisuseError, match=r"in evaluation 2: .*/here and that of .*/there"):
        _put(store, tmp_path / "there")
    assert _everything(store) == before


def test_an_ended_run_does_not_go_on_elsewhere(tmp_path, store):
    search(tmp_path / "here", *KERNELS[:2])
    search(tmp_path / "there", *KERNELS)
    _put(store, tmp_path / "here")
    with pytest.raises(MisuseError, match=r"in length: the one in .*/here had ended"):
        _put(store, tmp_path / "there")


def test_stores_of_two_machines_merge_in_any_order(tmp_path):
    search(tmp_path / "both", seed=0)
    search(tmp_path / "one_only", seed=1)
    search(tmp_path / "other_only", seed=2)
    paths = {"one": tmp_path / "one.sqlite", "other": tmp_path / "other.sqlite"}
    for name, path in paths.items():
        with ResultsStore(path, write=True) as store:
            _put(store, tmp_path / "both", tmp_path / f"{name}_only")
    merged = []
    for order in (["one", "other", "one"], ["other", "one"]):
        with ResultsStore(tmp_path / f"{''.join(order)}.sqlite", write=True) as store:
            told = merge_stores(store, [paths[name] for name in order])
            assert (told.runs, told.changed) == (2 * len(order), 3)
            merged.append(_everything(store))
    assert merged[0] == merged[1]
    assert [len(merged[0][table]) for table in ("runs", "evaluations")] == [3, 15]


def test_one_writer_at_a_time_and_readers_beside_it(tmp_path, store):
    with pytest.raises(MisuseError, match="another process is writing"):
        ResultsStore(store.path, write=True)
    search(tmp_path / "run")
    with ResultsStore(store.path) as reader:
        assert reader.runs() == []
        _put(store, tmp_path / "run")
        assert len(reader.runs()) == 1
        with pytest.raises(MisuseError, match="for reading only"):
            reader.put(read_run(tmp_path / "run"))


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(MisuseError, match="there is no results store"):
        ResultsStore(tmp_path / "missing.sqlite")
    (tmp_path / "text.sqlite").write_text("no database" * 100)
    with pytest.raises(MisuseError, match="is not a results store"):
        ResultsStore(tmp_path / "text.sqlite", write=True)
    ResultsStore(tmp_path / "old.sqlite", write=True).close()
    with sqlite3.connect(tmp_path / "old.sqlite") as database:
        database.execute("UPDATE meta SET value = '0' WHERE key = 'schema_version'")
    with pytest.raises(MisuseError, match=f"version 0, this is for version {SCHEMA_VERSION}"):
        ResultsStore(tmp_path / "old.sqlite")


def test_a_store_that_cannot_be_written_is_the_infrastructures_fault(tmp_path, store):
    search(tmp_path / "run")
    stored = read_run(tmp_path / "run")
    with sqlite3.connect(store.path) as database:
        database.execute("DROP TABLE sources")
    with pytest.raises(InfrastructureError, match="cannot be written"):
        store.put(stored)
    assert store.runs() == []


def test_folders_are_found_and_empty_ones_refused(tmp_path):
    search(tmp_path / "a" / "deep")
    (tmp_path / "b").mkdir()
    assert list(run_folders([tmp_path / "a"])) == [tmp_path / "a" / "deep"]
    with pytest.raises(MisuseError, match="no run there"):
        list(run_folders([tmp_path / "b"]))
    with pytest.raises(MisuseError, match="there is no run"):
        read_run(tmp_path / "b")


@pytest.mark.parametrize("file_format", ExportFormat)
def test_exports_hold_every_row(tmp_path, store, file_format):
    if file_format is ExportFormat.PARQUET:
        pytest.importorskip("pyarrow")
    search(tmp_path / "run")
    _put(store, tmp_path / "run")
    export(store, tmp_path / "out", file_format)
    rows = _exported(tmp_path / "out" / f"evaluations.{file_format.value}", file_format)
    assert set(rows[0]) == set(columns_of(EvaluationRecord)) - {"detail"}
    (run,) = store.runs()
    assert [float(row["total_s"]) for row in rows] == [each.total_s for each in store.evaluations(run.run_id)]
    assert [row["status"] for row in rows] == ["ok", "ok", "timeout", "ok", "ok"]


def _exported(path, file_format):
    if file_format is ExportFormat.PARQUET:
        from pyarrow import parquet

        return parquet.read_table(path).to_pylist()
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_difference_of_two_runs(tmp_path, store):
    search(tmp_path / "one")
    search(tmp_path / "other", "// latency: 40\n", seed=1)
    _put(store, tmp_path / "one", tmp_path / "other")
    one, other = store.runs()
    differences = run_differences(store, one, other)["differences"]
    assert differences["seed"] == (0, 1)
    assert differences["speedup"] == (one.speedup, other.speedup)
    assert differences["statuses.timeout"] == (1, None)
    assert not any(name.startswith("sessions") for name in differences)


def test_the_runs_command(tmp_path, run):
    search(tmp_path / "runs" / "a")
    search(tmp_path / "runs" / "b", "// latency: 40\n", seed=1)
    status, _, said = run("runs", "import", tmp_path / "runs")
    assert (status, "2 runs read, 2 of them news" in said) == (0, True)
    status, listed, _ = run("runs", "list")
    assert status == 0
    ids = [line.split()[0] for line in listed.splitlines()[1:]]
    assert ["2.500x" in listed, "2.000x" in listed, len(ids)] == [True, True, 2]
    assert "strategy_finished" in run("runs", "show", ids[0])[1]
    assert "seed" in run("runs", "diff", *ids)[1]
    status, _, said = run("runs", "show", "zz")
    assert (status, "no runs have an id that begins with 'zz'" in said) == (2, True)
    assert run("runs", "export", "--out", tmp_path / "out")[0] == 0
    assert (tmp_path / "out" / "runs.csv").exists()


def test_two_folders_of_one_run_are_counted_once_and_named(tmp_path, run):
    for name in ("one", "two"):
        search(tmp_path / "runs" / name)
    search(tmp_path / "runs" / "zero", seed=1)
    status, _, told = run("runs", "import", "runs")
    assert status == 0
    assert "3 runs read, 2 of them news" in told
    assert "runs/two is the same run as " in told
    assert f":{tmp_path / 'runs' / 'one'}: same operator, settings" in told


def test_without_a_store_the_whole_command_is_named_that_makes_one(tmp_path, run):
    search(tmp_path / "runs" / "one")
    status, _, told = run("runs", "list")
    assert (status, "'ascend-gym runs import runs'" in told) == (2, True)
    assert run("runs", "import", "runs")[0] == 0
    assert run("runs", "list")[0] == 0
