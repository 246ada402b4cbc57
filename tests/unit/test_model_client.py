"""Several questions at a time, a Ctrl-C that does not wait for them, and questions that are asked again."""

import signal
import threading

import pytest

from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Completion, Ending, Message
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.metering import MeteredLlm
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.seeds import derived_seed

MESSAGES = [Message("user", "hello")]
PURPOSES = [("sample", number) for number in range(4)]
SEEDS = [derived_seed(0, *purpose) for purpose in PURPOSES]


class ScriptedLlm:
    """Does for each question what its script says, then answers with the question's number."""

    def __init__(self, script):
        self.script = script
        self.asked, self.threads = [], set()

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        number = SEEDS.index(seed)
        self.asked.append(number)
        self.threads.add(threading.current_thread())
        self.script(number)
        return Completion(str(number), 1, 1, "m")


@pytest.fixture
def release():
    """Set at the end of the test, so that calls held back until then end with it."""
    event = threading.Event()
    yield event
    event.set()


def _ended(llm, release):
    release.set()
    for thread in llm.threads:
        thread.join(180)
        assert not thread.is_alive()


def _said(answer):
    return answer.text


def _fail():
    raise ModelError("no")


def test_answers_come_in_the_order_of_the_purposes():
    last_is_there = threading.Event()
    llm = ScriptedLlm(lambda number: last_is_there.set() if number == 3 else last_is_there.wait(180))
    model_client = ModelClient(llm, seed=0, concurrency=4)
    assert [answer.text for answer in model_client.read_all(MESSAGES, _said, PURPOSES)] == [
        "0",
        "1",
        "2",
        "3",
    ]


def test_an_interrupt_does_not_wait_for_calls_under_way(release):
    all_under_way = threading.Barrier(4, timeout=180)

    def hang(number):
        if all_under_way.wait() == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        release.wait(180)

    llm = ScriptedLlm(hang)
    with pytest.raises(KeyboardInterrupt):
        next(ModelClient(llm, seed=0, concurrency=4).read_all(MESSAGES, _said, PURPOSES))
    assert not release.is_set()
    assert all(thread.is_alive() and thread.daemon for thread in llm.threads)
    _ended(llm, release)


def test_a_caller_that_takes_no_more_answers_does_not_wait(release):
    other_is_under_way = threading.Event()

    def second_hangs(number):
        if number == 0:
            other_is_under_way.wait(180)
        else:
            other_is_under_way.set()
            release.wait(180)

    llm = ScriptedLlm(second_hangs)
    answers = ModelClient(llm, seed=0, concurrency=2).read_all(MESSAGES, _said, PURPOSES)
    assert next(answers).text == "0"
    answers.close()
    assert any(thread.is_alive() for thread in llm.threads)
    _ended(llm, release)
    assert 3 not in llm.asked


def test_after_an_error_calls_under_way_are_waited_for_and_none_is_begun():
    both, ended = threading.Barrier(2, timeout=180), []

    def script(number):
        both.wait()
        if number == 0:
            _fail()
        ended.append(number)

    llm = ScriptedLlm(script)
    with pytest.raises(ModelError, match="no"):
        list(ModelClient(llm, seed=0, concurrency=2).read_all(MESSAGES, _said, PURPOSES[:2]))
    assert ended == [1]


class Talking:
    """Answers from a list, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        self.asked.append((list(messages), seed))
        text, ending = self.answers.pop(0)
        return Completion(text, 100, 10, "m", ending=ending)


def _number(answer):
    if answer.text.isdigit():
        return int(answer.text)
    kind = ProblemKind.REFUSED if answer.ending is Ending.REFUSED else ProblemKind.NO_FILES
    return ParseProblem(kind, "expected a number")


def test_an_unusable_answer_is_asked_for_once_more_with_the_reason():
    llm = Talking(("seven", Ending.COMPLETE), ("7", Ending.COMPLETE))
    reading = ModelClient(llm, seed=0).read(MESSAGES, _number, "count", 3)
    assert (reading.value, reading.text) == (7, "7")
    assert [call["purpose"] for call in reading.calls] == [["count", 3], ["count", 3, "again"]]
    assert [call["prompt_tokens"] for call in reading.calls] == [100, 100]
    (first, _), (second, _) = llm.asked
    assert second[: len(first)] == first
    assert [message.role for message in second[len(first) :]] == ["assistant", "user"]
    assert second[-2].content == "seven"
    assert "expected a number" in second[-1].content
    assert llm.asked[0][1] != llm.asked[1][1]


def test_it_is_asked_once_more_and_not_twice():
    llm = Talking(("", Ending.TOKEN_LIMIT), ("eight", Ending.COMPLETE), ("9", Ending.COMPLETE))
    reading = ModelClient(llm, seed=0).read(MESSAGES, _number, "count")
    assert reading.value == ParseProblem(ProblemKind.NO_FILES, "expected a number")
    assert [call.get("ending") for call in reading.calls] == ["token_limit", None]
    assert llm.asked[1][0][-2].content == "(no answer)"
    assert len(llm.asked) == 2


def test_a_refusal_is_not_argued_with():
    llm = Talking(("no", Ending.REFUSED))
    reading = ModelClient(llm, seed=0).read(MESSAGES, _number, "count")
    assert reading.value.kind is ProblemKind.REFUSED
    assert len(reading.calls) == 1


def test_the_second_question_is_charged_in_tokens():
    ledger = BudgetLedger(Budget(10, tokens=5000))
    llm = MeteredLlm(Talking(("seven", Ending.COMPLETE), ("7", Ending.COMPLETE)), ledger)
    assert ModelClient(llm, seed=0, max_tokens=100).read(MESSAGES, _number, "count").value == 7
    assert (ledger.spent.tokens, ledger.spent.evaluations) == (220, 0)


def test_a_long_answer_is_quoted_in_part():
    llm = Talking(("x" * 100_000, Ending.COMPLETE), ("7", Ending.COMPLETE))
    ModelClient(llm, seed=0).read(MESSAGES, _number, "count")
    assert len(llm.asked[1][0][-2].content) < 30_000
