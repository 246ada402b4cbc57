"""A search with a strategy that follows a list, against an evaluator that answers late."""

import signal

from conftest import FakeEvaluator, make_candidate, make_spec

from ascend_gym.core.protocols import Proposal
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.outcome import UnusableProposal
from ascend_gym.search.search_rules import SearchRules

SPEC = make_spec()


class ScriptedStrategy:
    """Proposes kernels from a list; an exception in the list is raised, a string is the kernel's text."""

    def __init__(self, kernels):
        self.kernels = list(kernels)
        self.observed = []
        self.closed = False

    def propose(self, limit):
        if not self.kernels:
            return []
        kernel = self.kernels.pop(0)
        if isinstance(kernel, Exception):
            raise kernel
        if kernel is None:
            return [UnusableProposal(SPEC.baseline, {"kind": "test"}, "the answer is empty")]
        return [Proposal(make_candidate(kernel=kernel), {"kind": "test"})]

    def observe(self, proposal, result):
        self.observed.append((proposal.candidate.kernel_text, result.status))

    def close(self):
        self.closed = True


class InterruptedStrategy(ScriptedStrategy):
    """Sends Ctrl-C where the script says so."""

    def propose(self, limit):
        if self.kernels[:1] == ["ctrl-c"]:
            signal.raise_signal(signal.SIGINT)
        return super().propose(limit)


class LateEvaluator(FakeEvaluator):
    """Delivers one result per poll, the newest first."""

    def __init__(self, statuses=None, device_seconds=0.0):
        super().__init__(statuses)
        self.device_seconds = device_seconds
        self.most_waiting = 0
        self.cancelled = []
        self._waiting = []

    def arrived(self, timeout_s):
        self._waiting += super().arrived(timeout_s)
        self.most_waiting = max(self.most_waiting, len(self._waiting))
        if not self._waiting:
            return []
        request_id, result = self._waiting.pop()
        charge = result.charge.model_copy(update={"device_seconds": self.device_seconds})
        return [(request_id, result.model_copy(update={"charge": charge}))]

    def cancel(self, evaluation):
        self.cancelled.append(evaluation.request_id)
        super().cancel(evaluation)


def search(tmp_path, strategy, evaluator=None, budget=10, in_flight=1, on_event=None, **rules):
    budget = budget if isinstance(budget, Budget) else Budget(budget)
    with Journal(tmp_path) as journal:
        ledger = BudgetLedger(budget)
        return run_search(
            SPEC,
            strategy,
            evaluator or FakeEvaluator(),
            ledger,
            journal,
            SearchRules(**rules),
            in_flight=in_flight,
            on_event=on_event,
        )


LATENCIES = ["// latency: 80", "// latency: 120", "// latency: 50", "// latency: 60"]
