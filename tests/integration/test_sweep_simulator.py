"""A sweep with a real method on the real simulator: its runs are those of ``ascend-gym optimize``."""

import json

import pytest

from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.sweep.store import ResultsStore

pytestmark = pytest.mark.slow


def test_a_sweep_compares_methods_on_one_daemon_and_says_where_the_time_went(simulator_daemon, tmp_path, run):
    methods = ["random-rewrites", "best-of-n"]
    options = [word for method in methods for word in ("--method", method)]
    wanted = ["sweep", *options, "--op", "exp", "--budget", 2, "--out", "s", "--daemon", simulator_daemon]
    status, out, err = run(*wanted)
    assert status == 0, err
    first = json.loads((tmp_path / "s" / "results.json").read_text())["comparisons"][0]
    assert (first["operators"], first["left_out"]) == (["core/exp"], [])
    assert set(first["speedups"]["2"]) == set(methods)
    assert all(method in out for method in methods)
    assert "Wall time of evaluations" in out
    assert "Budget 2: 1 operator, 1 seed" in (tmp_path / "s" / "table.md").read_text()


def test_a_sweep_makes_the_runs_that_optimize_makes(simulator_daemon, tmp_path, run):
    common = ["--method", "best-of-n", "--budget", 1, "--daemon", simulator_daemon]
    status, out, _ = run("sweep", *common, "--op", "core/add", "--out", "s", "--json")
    assert (status, json.loads(out)["endings"]) == (0, {"finished": 1})
    assert run("optimize", "core/add", *common, "--out", "o", "--json")[0] == 0
    (journal,) = (tmp_path / "s").rglob(JOURNAL_NAME)
    assert journal.read_bytes() == (tmp_path / "o" / JOURNAL_NAME).read_bytes()
    assert (journal.parent / "best.diff").read_text() == (tmp_path / "o" / "best.diff").read_text()
    with ResultsStore(tmp_path / "s" / "results.sqlite") as store:
        (stored,) = store.runs()
        assert store.operator(stored).level == 1
        assert json.loads(store.sessions(stored.run_id)[0].command)["command"][1] == "sweep"
        ((toolchains, backend),) = store.query("SELECT toolchains, backend FROM provenance")
    assert (toolchains, backend) == (1, "simulator")
