"""Runs of the real driver, in folders, for tests of the results store."""

from __future__ import annotations

from conftest import FakeEvaluator, make_spec

from ascend_gym.core.protocols import Proposal
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.search_rules import Duplicates, SearchRules
from ascend_gym.sweep.run_folders import note_session

SPEC = make_spec()
CALL = {"model": "paid", "prompt_tokens": 1000, "completion_tokens": 500}
KERNELS = ("// latency: 80\n", "// status: timeout\n", "// latency: 80\n", "// latency: 50\n")


class Scripted:
    """Proposes kernels that say how long they take, or how they fail."""

    def __init__(self, kernels):
        self._kernels = list(kernels)

    def propose(self, limit):
        taken, self._kernels = self._kernels[:limit], self._kernels[limit:]
        origin = {"kind": "sample", "calls": [CALL]}
        return [Proposal(SPEC.baseline.rewritten(kernel=text), origin) for text in taken]

    def observe(self, proposal, result):
        pass

    def close(self):
        pass


def search(folder, *kernels, method="best-of-n", seed=0, budget=10, evaluator=None, duplicates=None, **more):
    """Run a search in ``folder``, with ``more`` settings on record, and return its outcome."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"method": method, "model": "paid", "seed": seed, "budget": budget, "price": "1,2", **more}
    with Journal(folder) as journal:
        note_session(folder, ["ascend-gym", "optimize"])
        return run_search(
            SPEC,
            Scripted(kernels or KERNELS),
            evaluator or FakeEvaluator(),
            BudgetLedger(Budget(budget)),
            journal,
            SearchRules(duplicates or Duplicates.CHARGED, settings=settings),
        )


def beginning(folder, whole, lines):
    """Write the first ``lines`` of the journal in ``whole`` into ``folder``: a run that was broken off."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (whole / JOURNAL_NAME).read_text("utf-8").splitlines(keepends=True)
    (folder / JOURNAL_NAME).write_text("".join(text[:lines]), "utf-8")
    return folder
