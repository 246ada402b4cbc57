"""Several questions under way at a time: their order, and that nobody waits for them after a Ctrl-C."""

import re
import signal
import threading

import pytest
from conftest import make_candidate

from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.asker import Asker
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
        thread.join(20)
        assert not thread.is_alive()


def _fail():
    raise ModelError("no")


def test_answers_come_in_the_order_of_the_purposes():
    last_is_there = threading.Event()
    llm = ScriptedLlm(lambda number: last_is_there.set() if number == 3 else last_is_there.wait(180))
    asker = Asker(llm, seed=0, concurrency=4)
    assert [answer.text for answer in asker.ask_all(MESSAGES, PURPOSES)] == ["0", "1", "2", "3"]


def test_an_interrupt_does_not_wait_for_calls_under_way(release):
    all_under_way = threading.Barrier(4, timeout=180)

    def hang(number):
        if all_under_way.wait() == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        release.wait(60)

    llm = ScriptedLlm(hang)
    with pytest.raises(KeyboardInterrupt):
        next(Asker(llm, seed=0, concurrency=4).ask_all(MESSAGES, PURPOSES))
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
            release.wait(60)

    llm = ScriptedLlm(second_hangs)
    answers = Asker(llm, seed=0, concurrency=2).ask_all(MESSAGES, PURPOSES)
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
        list(Asker(llm, seed=0, concurrency=2).ask_all(MESSAGES, PURPOSES[:2]))
    assert ended == [1]


@pytest.mark.parametrize(
    ("text", "cut_off", "told"),
    [
        (
            "",
            True,
            r"no file \(cut off at the limit of 70 tokens before it said anything: raise ",
        ),
        ("```cpp", True, r"no file \(cut off at the limit of 70 tokens before its end: raise"),
        ("hello", False, "no file$"),
    ],
)
def test_unusable_answers_say_that_they_were_cut_off(text, cut_off, told):
    class Cut:
        def complete(self, messages, *, seed, max_tokens, deadline_s):
            return Completion(text, 1, 1, "m", cut_off=cut_off)

    answer = Asker(Cut(), seed=0, max_tokens=70).ask(MESSAGES, "sample")
    proposal = answer.unusable("no file", make_candidate(), {"kind": "sample"})
    assert re.match(told, proposal.problem)
    assert proposal.origin == {"kind": "sample", "answer": text}
