"""The search loop against an evaluator that answers from the source text, late and out of order."""

import contextlib

import pytest
from conftest import FakeEvaluator
from scripted_search import LATENCIES, SPEC, InterruptedStrategy, LateEvaluator, ScriptedStrategy, search

from ascend_gym.core.best import speedup
from ascend_gym.core.errors import BudgetExceededError, InfrastructureError, MisuseError, ModelError
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status, rule_of
from ascend_gym.search.driver import FREE_DUPLICATES_LIMIT, INFRA_ATTEMPTS, NEUTRAL_LIMIT, run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger, Cost
from ascend_gym.search.outcome import BASELINE_ORIGIN, StopReason
from ascend_gym.search.search_rules import Duplicates
from ascend_gym.suite.requests import request_for


def test_the_best_is_the_fastest_correct_candidate(tmp_path):
    outcome = search(tmp_path, ScriptedStrategy([*LATENCIES, "// status: incorrect\n// latency: 1"]))
    assert outcome.baseline_latency_us == pytest.approx(100.0)
    assert outcome.best_latency_us == pytest.approx(50.0)
    assert outcome.speedup == pytest.approx(2.0)
    assert outcome.best.kernel_text == "// latency: 50"
    assert outcome.evaluations == 5
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED
    assert [step.improved for step in outcome.history] == [True, True, False, True, False, False]
    assert [step.index for step in outcome.history] == list(range(6))


def test_the_baseline_is_observed_first_and_not_charged(tmp_path):
    strategy = ScriptedStrategy(["// latency: 80"])
    outcome = search(tmp_path, strategy, budget=1)
    assert strategy.observed[0] == ("// kernel", Status.OK)
    assert outcome.history[0].proposal.origin == BASELINE_ORIGIN
    assert outcome.history[0].spent == Cost()
    assert outcome.history[1].spent == Cost(evaluations=1)


def test_nothing_faster_leaves_the_baseline_as_best(tmp_path):
    outcome = search(tmp_path, ScriptedStrategy(["// latency: 100", "// latency: 300"]))
    assert outcome.best == SPEC.baseline
    assert outcome.speedup == 1.0


@pytest.mark.parametrize("budget", [0, 1, 3])
@pytest.mark.parametrize("in_flight", [1, 4])
def test_the_budget_is_spent_to_the_evaluation_and_not_beyond(tmp_path, budget, in_flight):
    evaluator = LateEvaluator()
    strategy = ScriptedStrategy(LATENCIES * 2)
    outcome = search(tmp_path, strategy, evaluator, budget, in_flight=in_flight)
    assert outcome.evaluations == budget
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert len(evaluator.requests) == budget + 1
    assert len(strategy.kernels) == 8 - budget


def test_in_flight_limits_what_is_under_way(tmp_path):
    evaluator = LateEvaluator()
    search(tmp_path, ScriptedStrategy(LATENCIES * 2), evaluator, in_flight=3)
    assert evaluator.most_waiting == 3


KERNELS = [
    *LATENCIES,
    None,
    "// status: build_error",
    "// status: timeout",
    "// latency: 40",
    "// latency: 40\n",
]


def test_order_of_results_and_number_in_flight_change_nothing(tmp_path):
    runs = {}
    for name, evaluator, in_flight in [
        ("one", FakeEvaluator(), 1),
        ("four", FakeEvaluator(), 4),
        ("late", LateEvaluator(), 4),
        ("all", LateEvaluator(), 100),
    ]:
        strategy = ScriptedStrategy(KERNELS)
        outcome = search(tmp_path / name, strategy, evaluator, in_flight=in_flight)
        journal = (tmp_path / name / JOURNAL_NAME).read_bytes()
        runs[name] = (journal, strategy.observed, outcome.best, outcome.spent.evaluations)
    assert len(set(map(repr, runs.values()))) == 1
    assert runs["one"][2].kernel_text == "// latency: 40"
    assert runs["one"][3] == len(KERNELS)


def test_events_are_the_history_as_it_happens(tmp_path):
    events = []
    outcome = search(
        tmp_path, ScriptedStrategy(LATENCIES), LateEvaluator(), in_flight=4, on_event=events.append
    )
    assert tuple(events) == outcome.history


def test_an_unusable_answer_is_spent_but_never_submitted(tmp_path):
    evaluator = FakeEvaluator()
    outcome = search(tmp_path, ScriptedStrategy([None, "// latency: 80"]), evaluator, budget=2)
    assert len(evaluator.requests) == 2
    step = outcome.history[1]
    assert step.result.status is Status.BUILD_ERROR
    assert step.result.all_diagnostics[0].message == "the answer is empty"
    assert step.spent == Cost(evaluations=1, device_seconds=0.0)
    assert outcome.evaluations == 2


@pytest.mark.parametrize("status", [status for status in Status if rule_of(status).charged])
def test_candidate_faults_are_charged(tmp_path, status):
    outcome = search(tmp_path, ScriptedStrategy([f"// status: {status.value}"]))
    assert outcome.evaluations == 1


@pytest.mark.parametrize("status", [status for status in Status if not rule_of(status).charged])
def test_what_is_not_the_candidates_fault_is_not_charged(tmp_path, status):
    outcome = search(tmp_path, ScriptedStrategy([f"// status: {status.value}", "// latency: 90"]), budget=1)
    assert outcome.evaluations == 1
    assert outcome.best_latency_us == pytest.approx(90.0)
    assert [step.spent.evaluations for step in outcome.history] == [0, 0, 1]


def test_infrastructure_errors_are_submitted_again(tmp_path):
    evaluator = FakeEvaluator({1: Status.INFRA_ERROR, 2: Status.INFRA_ERROR})
    outcome = search(tmp_path, ScriptedStrategy(["// latency: 80"]), evaluator)
    assert outcome.best_latency_us == pytest.approx(80.0)
    assert len(evaluator.requests) == 1 + INFRA_ATTEMPTS
    assert len(outcome.history) == 2


def test_infrastructure_that_stays_broken_ends_the_search_with_what_it_found(tmp_path):
    broken = dict.fromkeys(range(2, 100), Status.INFRA_ERROR)
    evaluator = FakeEvaluator(broken)
    outcome = search(
        tmp_path, ScriptedStrategy(["// latency: 80", *map(str, range(12))]), evaluator, budget=20
    )
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    assert "in a row failed" in outcome.message
    assert len(evaluator.requests) == 2 + NEUTRAL_LIMIT * INFRA_ATTEMPTS
    assert outcome.best_latency_us == pytest.approx(80.0)
    assert outcome.evaluations == 1


@pytest.mark.parametrize(
    ("status", "reason"),
    [(Status.INCORRECT, StopReason.BASELINE_FAILED), (Status.INFRA_ERROR, StopReason.INFRASTRUCTURE)],
)
def test_a_baseline_that_is_not_measured_ends_the_search(tmp_path, status, reason):
    strategy = ScriptedStrategy(LATENCIES)
    evaluator = FakeEvaluator(dict.fromkeys(range(INFRA_ATTEMPTS), status))
    outcome = search(tmp_path, strategy, evaluator)
    assert outcome.stop_reason is reason
    assert status.value in outcome.message
    assert outcome.speedup is None
    assert outcome.baseline.status is status
    assert len(strategy.kernels) == len(LATENCIES)


def test_a_model_that_cannot_be_reached_ends_the_search_after_what_is_under_way(tmp_path):
    strategy = ScriptedStrategy(
        ["// latency: 80", "// latency: 70", ModelError("no answer"), "// latency: 1"]
    )
    outcome = search(tmp_path, strategy, LateEvaluator(), in_flight=4)
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    assert "no answer" in outcome.message
    assert outcome.best_latency_us == pytest.approx(70.0)
    assert outcome.evaluations == 2


class DyingEvaluator(LateEvaluator):
    """Breaks at the third poll."""

    polls = 0

    def arrived(self, timeout_s):
        self.polls += 1
        if self.polls == 3:
            raise InfrastructureError("the daemon is gone")
        return super().arrived(timeout_s)


def test_a_broken_evaluator_ends_the_search_and_what_is_under_way_is_cancelled(tmp_path):
    evaluator = DyingEvaluator()
    outcome = search(tmp_path, ScriptedStrategy(LATENCIES), evaluator, in_flight=3)
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    assert outcome.message == "the daemon is gone"
    assert sorted(evaluator.cancelled) == ["1", "2"]
    assert len(outcome.history) == 1


class MixedUpEvaluator(FakeEvaluator):
    """Answers every request with the result of the first."""

    def arrived(self, timeout_s):
        finished = super().arrived(timeout_s)
        self.first = getattr(self, "first", finished[0][1])
        return [(request_id, self.first) for request_id, _ in finished]


def test_the_result_of_another_request_is_refused(tmp_path):
    outcome = search(tmp_path, ScriptedStrategy(["// latency: 80"]), MixedUpEvaluator())
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    assert "another one" in outcome.message


def test_device_seconds_are_charged_and_limit_the_search(tmp_path):
    protocol = MeasureProtocol(run_timeout_s=1.0)  # at most 4 s for two cases, with slack
    evaluator = LateEvaluator(device_seconds=1.5)
    outcome = search(
        tmp_path,
        ScriptedStrategy(LATENCIES * 3),
        evaluator,
        Budget(100, device_seconds=8.0),
        protocol=protocol,
    )
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert outcome.spent == Cost(evaluations=3, device_seconds=4.5)


@pytest.mark.parametrize(("duplicates", "spent"), [(Duplicates.CHARGED, 4), (Duplicates.FREE, 2)])
@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_known_candidate_is_not_measured_again(tmp_path, duplicates, spent, in_flight):
    evaluator = LateEvaluator(device_seconds=0.5)
    kernels = [LATENCIES[0], LATENCIES[0], SPEC.baseline.kernel_text, LATENCIES[1]]
    outcome = search(
        tmp_path, ScriptedStrategy(kernels), evaluator, in_flight=in_flight, duplicates=duplicates
    )
    assert len(evaluator.requests) == 3
    assert outcome.spent == Cost(evaluations=spent, device_seconds=1.0)
    latencies = [step.result.latency_us for step in outcome.history]
    assert latencies == pytest.approx([100.0, 80.0, 80.0, 100.0, 120.0])
    with Journal(tmp_path) as journal:
        copies = [record.get("duplicate_of") for record in journal.records if record["kind"] == "proposal"]
    assert copies == [None, None, 1, 0, None]


def test_free_duplicates_without_end_end_the_search(tmp_path):
    strategy = ScriptedStrategy([LATENCIES[0]] * (2 * FREE_DUPLICATES_LIMIT))
    outcome = search(tmp_path, strategy, duplicates=Duplicates.FREE)
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED
    assert "all known" in outcome.message
    assert outcome.evaluations == 1
    assert len(outcome.history) == 2 + FREE_DUPLICATES_LIMIT


def test_a_duplicate_of_what_was_never_measured_is_measured(tmp_path):
    evaluator = FakeEvaluator(dict.fromkeys(range(1, 1 + INFRA_ATTEMPTS), Status.INFRA_ERROR))
    outcome = search(tmp_path, ScriptedStrategy([LATENCIES[0]] * 2), evaluator)
    assert [step.result.status for step in outcome.history[1:]] == [Status.INFRA_ERROR, Status.OK]


def test_a_budget_for_models_that_is_spent_ends_the_search(tmp_path):
    strategy = ScriptedStrategy([LATENCIES[0], BudgetExceededError("900 tokens asked for")])
    outcome = search(tmp_path, strategy)
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert "900 tokens" in outcome.message
    assert outcome.evaluations == 1


def test_an_invalid_request_for_the_baseline_is_no_fault_of_the_infrastructure(tmp_path):
    outcome = search(tmp_path, ScriptedStrategy([]), FakeEvaluator({0: Status.INVALID_REQUEST}))
    assert outcome.stop_reason is StopReason.BASELINE_FAILED


def test_only_operators_outside_the_suites_name_their_folder():
    assert request_for(SPEC, SPEC.baseline, MeasureProtocol()).op_folder is None
    local = SPEC.model_copy(update={"op_id": "local/toy"})
    request = request_for(local, SPEC.baseline, MeasureProtocol())
    assert request.op_folder == SPEC.folder
    assert request.folder_digest == SPEC.folder_digest


def _ledger_after(folder, strategy, evaluator, **options):
    ledger = BudgetLedger(Budget(10))
    with Journal(folder) as journal, contextlib.suppress(MisuseError):
        run_search(SPEC, strategy, evaluator, ledger, journal, **options)
    return ledger


@pytest.mark.parametrize(
    ("strategy", "evaluator"),
    [
        (ScriptedStrategy([*LATENCIES[:2], MisuseError("no such rule")]), LateEvaluator()),
        (ScriptedStrategy([*LATENCIES[:2], ModelError("no answer")]), LateEvaluator()),
        (InterruptedStrategy([*LATENCIES[:2], "ctrl-c"]), LateEvaluator()),
        (ScriptedStrategy(LATENCIES), DyingEvaluator()),
    ],
    ids=["misuse", "model", "ctrl-c", "evaluator"],
)
def test_nothing_stays_reserved_however_a_search_ends(tmp_path, strategy, evaluator):
    ledger = _ledger_after(tmp_path, strategy, evaluator, in_flight=3)
    assert ledger.reserved == Cost()
    assert strategy.closed


def test_an_evaluation_that_holds_the_device_too_long_is_charged_what_was_reserved(tmp_path):
    protocol = MeasureProtocol(run_timeout_s=1.0)  # at most 4 s for two cases, with slack
    budget = Budget(100, device_seconds=8.0)
    evaluator = LateEvaluator(device_seconds=8.5)
    outcome = search(tmp_path, ScriptedStrategy(LATENCIES), evaluator, budget, protocol=protocol)
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert "took longer" in outcome.message
    assert outcome.spent == Cost(evaluations=1, device_seconds=4.0)


def test_a_budget_that_covers_no_evaluation_says_what_one_may_cost(tmp_path):
    protocol = MeasureProtocol(run_timeout_s=1.0)
    budget = Budget(100, device_seconds=3.0)
    outcome = search(tmp_path, ScriptedStrategy(LATENCIES), budget=budget, protocol=protocol)
    assert (outcome.stop_reason, outcome.evaluations) == (StopReason.BUDGET_SPENT, 0)
    assert "device_seconds=4.0" in outcome.message


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_duplicate_takes_the_result_of_the_first_that_was_measured(tmp_path, in_flight):
    evaluator = FakeEvaluator(dict.fromkeys(range(1, 1 + INFRA_ATTEMPTS), Status.INFRA_ERROR))
    outcome = search(tmp_path, ScriptedStrategy([LATENCIES[0]] * 3), evaluator, in_flight=in_flight)
    assert [step.result.status for step in outcome.history[1:]] == [Status.INFRA_ERROR, Status.OK, Status.OK]
    assert len(evaluator.requests) == 2 + INFRA_ATTEMPTS
    with Journal(tmp_path) as journal:
        copies = [record.get("duplicate_of") for record in journal.records if record["kind"] == "proposal"]
    assert copies == [None, None, None, 2]


def test_a_search_that_may_submit_nothing_is_misuse(tmp_path):
    with pytest.raises(MisuseError, match="at least 1"):
        search(tmp_path, ScriptedStrategy(LATENCIES), in_flight=0)


def test_a_speedup_needs_both_latencies():
    assert (speedup(10.0, 5.0), speedup(10.0, None), speedup(None, 5.0)) == (2.0, None, None)
