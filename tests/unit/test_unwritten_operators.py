"""Searches on an operator without sources: what is found, printed and stored follows one rule."""

from types import SimpleNamespace

import pytest
from conftest import FakeEvaluator
from rich.console import Console

from ascend_gym.core.protocols import Proposal
from ascend_gym.report.console import SearchView, print_search
from ascend_gym.report.stored_runs import print_runs, run_row
from ascend_gym.report.summary import search_summary
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.search_rules import SearchRules
from ascend_gym.suite.loader import load_operator
from ascend_gym.sweep.run_reader import read_run
from npu_daemon.eager import eager_result
from npu_daemon.simulator.target import target_sheet

SPEC = load_operator("generate/softmax")
SETTINGS = {"method": "best-of-n", "model": "offline", "seed": 0, "budget": 9}


class Evaluator(FakeEvaluator):
    """Prices the skeleton as framework calls, as the simulator does."""

    def _answer(self, number, request):
        if request.candidate.digest != SPEC.baseline.digest:
            return super()._answer(number, request)
        backend = SimpleNamespace(describe=self.describe, target=target_sheet)
        return eager_result(request, SPEC.cases, backend)


class Scripted:
    """Proposes kernels from a list, one at a time."""

    def __init__(self, kernels):
        self._kernels = list(kernels)

    def propose(self, limit):
        taken, self._kernels = self._kernels[:1], self._kernels[1:]
        return [Proposal(SPEC.baseline.rewritten(kernel=text), {"kind": "test"}) for text in taken]

    def observe(self, proposal, result):
        pass

    def close(self):
        pass


@pytest.fixture
def found(tmp_path):
    """Return a function from kernels to the outcome, what is printed, and the run as it is stored."""

    def search(*kernels):
        terminal = Console(record=True, width=200, markup=False)
        with Journal(tmp_path) as journal, SearchView(terminal, 9, SPEC) as view:
            ledger, rules = BudgetLedger(Budget(9)), SearchRules(settings=SETTINGS)
            strategy = Scripted(kernels)
            outcome = run_search(SPEC, strategy, Evaluator(), ledger, journal, rules, on_event=view.show)
        print_search(terminal, outcome, "", tmp_path / JOURNAL_NAME, "910B2")
        printed = terminal.export_text(clear=False)
        print_runs(terminal, [read_run(tmp_path).run])
        return outcome, [line.split() for line in printed.splitlines()], read_run(tmp_path)

    return search


def test_a_search_that_finds_nothing_correct_has_no_best_and_no_speedup(found, tmp_path):
    outcome, lines, stored = found("// status: build_error", "// status: incorrect")
    assert ["best", "-"] in lines
    assert ["speedup", "-"] in lines
    assert ["result", "no", "correct", "candidate"] in lines
    assert ["eager", "model", f"{outcome.baseline_latency_us:.2f}", "us"] in lines
    assert not any("baseline" in line for line in lines)
    summary = search_summary(outcome, SETTINGS, journal=tmp_path, files=[])
    assert (summary["best_latency_us"], summary["speedup"]) == (None, None)
    assert summary["result"] == "no correct candidate"
    assert (stored.run.best_latency_us, stored.run.best_digest) == (None, None)
    assert run_row(stored.run)["speedup"] is None


def test_the_first_correct_candidate_is_the_best_even_if_slower_and_is_stored_so(found):
    outcome, lines, stored = found(
        "// status: incorrect", "// latency: 100", "// latency: 120", "// latency: 90"
    )
    assert ["2", "ok", "100.00", "us", "first", "correct"] in lines
    assert ["4", "ok", "90.00", "us", "new", "best"] in lines
    assert not any("result" in line for line in lines)
    assert outcome.speedup < 1
    assert stored.run.speedup == outcome.speedup
    assert stored.run.best_digest == outcome.best.digest
    assert [bool(each.improved) for each in stored.evaluations] == [step.improved for step in outcome.history]
    assert [each.best_latency_us for each in stored.evaluations] == [
        step.best_latency_us for step in outcome.history
    ]
