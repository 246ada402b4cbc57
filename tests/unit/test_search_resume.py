"""What a search leaves behind: its journal, what Ctrl-C spares, and the same journal after resuming."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import FakeEvaluator
from pydantic import BaseModel, field_serializer
from scripted_search import LATENCIES, SPEC, InterruptedStrategy, LateEvaluator, ScriptedStrategy, search

from ascend_gym.core.append_log import AppendLog
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.interrupts import interruptible
from ascend_gym.core.records import Accuracy
from ascend_gym.core.status import Status
from ascend_gym.search.driver import INFRA_ATTEMPTS, NEUTRAL_LIMIT
from ascend_gym.search.journal import JOURNAL_NAME, TIMINGS_NAME, Journal
from ascend_gym.search.ledger import Budget
from ascend_gym.search.outcome import BASELINE_ORIGIN, StopReason


def test_the_journal_tells_the_whole_story(tmp_path):
    outcome = search(tmp_path, ScriptedStrategy(LATENCIES[:2]), settings={"method": "test", "seed": 5})
    with Journal(tmp_path) as journal:
        records = journal.records
    kinds = [record["kind"] for record in records]
    assert kinds == ["header", *["proposal", "result"] * 3, "end"]
    assert records[0]["settings"]["method"] == "test"
    assert records[0]["settings"]["protocol"]["chip"] == "910B2"
    assert records[1]["origin"] == BASELINE_ORIGIN
    assert records[3]["changed_files"] == {"op_kernel/toy.cpp": "// latency: 80"}
    assert records[-1]["evaluations"] == 2
    assert records[-1]["best_digest"] == outcome.best.digest
    assert records[-1]["stop_reason"] == "strategy_finished"


def test_ctrl_c_ends_the_search_with_what_it_has_found(tmp_path):
    evaluator = LateEvaluator()
    strategy = InterruptedStrategy([*LATENCIES[:3], "ctrl-c"])
    outcome = search(tmp_path, strategy, evaluator, in_flight=2)
    assert outcome.stop_reason is StopReason.INTERRUPTED
    assert "interrupted" in outcome.message
    assert (outcome.best.kernel_text, outcome.evaluations) == ("// latency: 80", 2)
    assert len(evaluator.cancelled) == 1
    with Journal(tmp_path) as journal:
        assert journal.records[-1]["kind"] == "result"


def test_ctrl_c_before_the_baseline_is_known_leaves_the_baseline_as_best(tmp_path):
    class Interrupted(FakeEvaluator):
        def arrived(self, timeout_s):
            raise KeyboardInterrupt

    outcome = search(tmp_path, ScriptedStrategy([]), Interrupted())
    assert (outcome.stop_reason, outcome.best) == (StopReason.INTERRUPTED, SPEC.baseline)
    assert (outcome.history, outcome.speedup) == ((), None)


class _Message(BaseModel):
    """A message whose encoder is interrupted: pydantic makes a ValueError of what a serialiser raises."""

    text: str

    @field_serializer("text")
    def _encoded(self, text: str) -> str:
        signal.raise_signal(signal.SIGINT)
        return text


def test_ctrl_c_that_a_library_has_turned_into_another_error_ends_the_search_all_the_same(tmp_path):
    class Encoding(FakeEvaluator):
        def submit(self, request):
            evaluation = super().submit(request)
            if self.requests[1:] == [request]:
                with pytest.raises(ValueError, match="KeyboardInterrupt"):
                    _Message(text="submit").model_dump_json()
            return evaluation

    with interruptible():
        outcome = search(tmp_path, ScriptedStrategy(LATENCIES), Encoding())
    assert (outcome.stop_reason, outcome.evaluations) == (StopReason.INTERRUPTED, 0)
    with Journal(tmp_path) as journal:  # what may have been spoilt is not on record
        assert [record["kind"] for record in journal.records] == ["header", "proposal", "result"]


def test_ctrl_c_in_the_middle_of_a_record_waits_for_its_end(tmp_path, monkeypatch):
    written = AppendLog.append

    def interrupted(log, record):
        if record.get("index") == 1:
            signal.raise_signal(signal.SIGINT)
        written(log, record)

    monkeypatch.setattr(AppendLog, "append", interrupted)
    outcome = search(tmp_path, ScriptedStrategy(LATENCIES))
    assert (outcome.stop_reason, outcome.evaluations) == (StopReason.INTERRUPTED, 1)
    with Journal(tmp_path) as journal:  # whole: its digests are checked
        kinds = [record["kind"] for record in journal.records]
    assert kinds == ["header", *["proposal", "result"] * 2]


def test_a_search_off_the_main_thread_runs_as_usual(tmp_path):
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(search, tmp_path, ScriptedStrategy(LATENCIES)).result()
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED


def test_the_journal_of_another_search_is_refused_and_left_as_it_is(tmp_path):
    search(tmp_path, ScriptedStrategy([]), settings={"seed": 1})
    before = (tmp_path / JOURNAL_NAME).read_bytes()
    strategy = ScriptedStrategy([])
    with pytest.raises(MisuseError, match="settings"):
        search(tmp_path, strategy, settings={"seed": 2})
    assert (tmp_path / JOURNAL_NAME).read_bytes() == before
    assert strategy.closed


def test_the_strategy_is_closed_at_the_end(tmp_path):
    strategy = ScriptedStrategy(LATENCIES)
    search(tmp_path, strategy)
    assert strategy.closed


class TimingEvaluator(LateEvaluator):
    """Spends device time; an incorrect result has no finite error."""

    def arrived(self, timeout_s):
        return [
            (request_id, _with_infinite_error(result)) for request_id, result in super().arrived(timeout_s)
        ]


def _with_infinite_error(result):
    accuracy = Accuracy(
        max_abs_error=float("inf"), max_rel_error=float("nan"), bad_share=1.0, upstream_rule_passes=False
    )
    cases = tuple(
        case.model_copy(update={"accuracy": accuracy}) if case.status is Status.INCORRECT else case
        for case in result.cases
    )
    return result.model_copy(update={"cases": cases})


RESUMED = [
    *LATENCIES,
    None,
    "// status: incorrect",
    LATENCIES[2],
    "// latency: 40",
    "// status: timeout",
    "// latency: 30",
]


@pytest.mark.slow
@pytest.mark.parametrize("in_flight", [1, 3])
def test_a_run_broken_off_anywhere_is_resumed_to_the_same_journal(tmp_path, in_flight):
    def run(folder, evaluator):
        strategy = ScriptedStrategy(RESUMED)
        return search(folder, strategy, evaluator, Budget(9, device_seconds=1e6), in_flight=in_flight)

    unbroken = run(tmp_path / "unbroken", TimingEvaluator(device_seconds=0.25))
    journal, timings = ((tmp_path / "unbroken" / name).read_bytes() for name in (JOURNAL_NAME, TIMINGS_NAME))
    cuts = [0, 7, *(at + ahead for at, byte in enumerate(journal) if byte == 10 for ahead in (1, 40))]
    for cut in cuts:
        folder = tmp_path / f"cut-{cut}"
        folder.mkdir()
        (folder / JOURNAL_NAME).write_bytes(journal[:cut])
        results = journal[:cut].count(b'"kind":"result"') + 1  # a timing is written before its result
        (folder / TIMINGS_NAME).write_bytes(b"".join(timings.splitlines(keepends=True)[:results]))
        evaluator = TimingEvaluator(device_seconds=0.25)
        resumed = run(folder, evaluator)
        assert (folder / JOURNAL_NAME).read_bytes() == journal
        assert (folder / TIMINGS_NAME).read_bytes() == timings
        assert (resumed.best, resumed.spent) == (unbroken.best, unbroken.spent)
        assert [step.result for step in resumed.history][:results] == [
            step.result for step in unbroken.history
        ][:results]
    assert evaluator.requests == []  # the last cut leaves a finished run: nothing is evaluated again


def test_a_resumed_search_that_takes_another_way_is_refused(tmp_path):
    search(tmp_path, ScriptedStrategy(LATENCIES))
    with pytest.raises(MisuseError, match="proposal 2"):
        search(tmp_path, ScriptedStrategy([LATENCIES[0], "// latency: 1"]))


def test_a_run_whose_infrastructure_failed_goes_on_when_it_is_resumed(tmp_path):
    kernels = ["// latency: 80", *(f"// latency: {us}" for us in range(60, 72))]
    broken = FakeEvaluator(dict.fromkeys(range(2, 99), Status.INFRA_ERROR))
    first = search(tmp_path, ScriptedStrategy(kernels), broken, budget=20)
    assert first.stop_reason is StopReason.INFRASTRUCTURE
    before = (tmp_path / JOURNAL_NAME).read_bytes()
    resumed = search(tmp_path, ScriptedStrategy(kernels), budget=20)
    assert (tmp_path / JOURNAL_NAME).read_bytes().startswith(before)
    failed = [step.result.status for step in resumed.history].count(Status.INFRA_ERROR)
    assert (resumed.stop_reason, failed) == (StopReason.STRATEGY_FINISHED, NEUTRAL_LIMIT)
    assert resumed.evaluations == len(kernels) - NEUTRAL_LIMIT


def test_a_baseline_that_the_infrastructure_failed_is_evaluated_again_on_resuming(tmp_path):
    failing = FakeEvaluator(dict.fromkeys(range(INFRA_ATTEMPTS), Status.INFRA_ERROR))
    first = search(tmp_path / "run", ScriptedStrategy(LATENCIES), failing)
    assert first.stop_reason is StopReason.INFRASTRUCTURE
    resumed = search(tmp_path / "run", ScriptedStrategy(LATENCIES))
    assert (resumed.stop_reason, resumed.evaluations) == (StopReason.STRATEGY_FINISHED, len(LATENCIES))
    search(tmp_path / "whole", ScriptedStrategy(LATENCIES))
    journals = [(tmp_path / name / JOURNAL_NAME).read_bytes() for name in ("run", "whole")]
    assert journals[0] == journals[1]


def test_a_baseline_that_was_misused_is_on_record_for_good(tmp_path):
    for _ in range(2):
        outcome = search(tmp_path, ScriptedStrategy([]), FakeEvaluator({0: Status.INVALID_REQUEST}))
        assert outcome.stop_reason is StopReason.BASELINE_FAILED
