"""Best-so-far curves and costs, read from the folders of real runs of the driver."""

import pytest
from conftest import BASELINE_LATENCY_US, FakeEvaluator, make_spec

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.status import Status
from ascend_gym.report.stored_runs import curve_of_run
from ascend_gym.report.sweep_summary import read_costs
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import StopReason, UnusableProposal
from ascend_gym.search.search_rules import Duplicates, SearchRules
from ascend_gym.sweep.run_reader import read_run
from baselines.best_of_n import BestOfN

SPEC = make_spec()
TILED = make_spec(
    tiling="constexpr uint32_t TILE_LENGTH = 1024;\nconstexpr uint32_t BLOCK_DIM = 8;\n",
    kernel="constexpr int32_t BUFFER_NUM = 1;\nvoid Compute()\n{\n    PipeBarrier<PIPE_ALL>();\n}\n",
)


class Scripted:
    """Proposes kernels that say how long they take, or how they fail; ``None`` is an answer without any."""

    def __init__(self, *kernels):
        self._proposals = [self._proposal(text) for text in kernels]

    @staticmethod
    def _proposal(text):
        if text is None:
            return UnusableProposal(SPEC.baseline, {}, "the answer is empty")
        return Proposal(SPEC.baseline.rewritten(kernel=text), {})

    def propose(self, limit):
        taken, self._proposals = self._proposals[:limit], self._proposals[limit:]
        return taken

    def observe(self, proposal, result):
        pass

    def close(self):
        pass


SETTINGS = {"method": "scripted", "model": "offline", "seed": 0, "budget": 10}


def read_curve(folder):
    stored = read_run(folder)
    return curve_of_run(stored.run, stored.evaluations)


def _latency(us):
    return f"// latency: {us}\n"


def _run(folder, *kernels, budget=10, evaluator=None, duplicates=Duplicates.CHARGED):
    with Journal(folder) as journal:
        return run_search(
            SPEC,
            Scripted(*kernels),
            evaluator or FakeEvaluator(),
            BudgetLedger(Budget(budget)),
            journal,
            SearchRules(duplicates, settings=SETTINGS),
        )


def test_the_curve_falls_and_never_rises(tmp_path):
    _run(tmp_path, _latency(50), _latency(80), "// status: incorrect", _latency(20))
    curve = read_curve(tmp_path)
    assert curve.best_us == pytest.approx((BASELINE_LATENCY_US, 50, 50, 50, 20))
    assert [curve.speedup_at(n) for n in (0, 1, 2, 3, 4, 40)] == pytest.approx([1, 2, 2, 2, 5, 5])
    assert curve.evaluations == 4
    assert curve.stop_reason == StopReason.STRATEGY_FINISHED.value


@pytest.mark.parametrize(("duplicates", "points"), [(Duplicates.CHARGED, 3), (Duplicates.FREE, 2)])
def test_a_point_is_a_charged_evaluation(tmp_path, duplicates, points):
    evaluator = FakeEvaluator({3: Status.CANCELLED})
    outcome = _run(
        tmp_path,
        _latency(50),
        _latency(50),
        _latency(40),
        _latency(30),
        evaluator=evaluator,
        duplicates=duplicates,
    )
    assert outcome.evaluations == points
    assert read_curve(tmp_path).best_us == pytest.approx((100, *([50] * (points - 1)), 40))


def test_a_baseline_that_fails_is_a_speedup_of_one(tmp_path):
    _run(tmp_path, evaluator=FakeEvaluator({0: Status.INCORRECT}))
    assert read_curve(tmp_path).speedup_at(40) == 1.0


def test_a_run_that_can_go_on_has_no_speedup_beyond_what_it_spent(tmp_path):
    neutral = dict.fromkeys(range(2, 30), Status.INFRA_ERROR)
    outcome = _run(tmp_path, *map(_latency, (50, 40, 30, 20)), evaluator=FakeEvaluator(neutral))
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    curve = read_curve(tmp_path)
    assert curve.speedup_at(1) == pytest.approx(2)
    with pytest.raises(MisuseError, match="not finished: 1 of 2"):
        curve.speedup_at(2)


def test_negative_budgets_are_refused(tmp_path):
    _run(tmp_path)
    with pytest.raises(MisuseError, match="0 or more"):
        read_curve(tmp_path).speedup_at(-1)


class _Pricing(FakeEvaluator):
    """Prices candidates by their digest."""

    def submit(self, request):
        us = 20 + int(request.candidate.digest[:4], 16) / 600
        kernel = f"{request.candidate.kernel_text}// latency: {us:.3f}\n"
        number = super().submit(
            request.model_copy(update={"candidate": request.candidate.rewritten(kernel=kernel)})
        )
        self._finished[-1] = (
            number,
            self._finished[-1][1].model_copy(update={"request_digest": request.digest}),
        )
        return number


def test_best_of_n_at_every_n_is_a_run_with_that_budget(tmp_path):
    def run(samples):
        folder = tmp_path / str(samples)
        with Journal(folder) as journal:
            run_search(
                TILED,
                BestOfN(TILED, ModelClient(OfflineModel(), seed=3), samples=samples),
                _Pricing(),
                BudgetLedger(Budget(samples)),
                journal,
                SearchRules(settings={**SETTINGS, "budget": samples}),
            )
        return read_curve(folder)

    long = run(12)
    for n in (1, 5, 11):
        assert run(n).best_us == long.best_us[: n + 1]
    assert long.speedup_at(12) > long.speedup_at(0)


def test_costs_leave_out_what_was_known_and_answers_without_a_candidate(tmp_path):
    _run(tmp_path / "a", _latency(50), _latency(50), None, "// status: timeout")
    costs = read_costs([tmp_path / "a"])
    assert (costs.evaluations, costs.cached) == (4, 1)
    assert costs.cached_share == 0.25
    assert costs.seconds_per_evaluation == costs.total_seconds / 3
    assert read_costs([]).seconds_per_evaluation == read_costs([]).cached_share == 0.0
