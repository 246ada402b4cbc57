"""Rate limits, concurrency and sizes of calls to a model, on a clock of the test's own."""

import threading

import pytest
from chat_server import ChatServer
from hypothesis import given
from hypothesis import strategies as st
from openai_faults import faulty_server, log_of

from ascend_gym.core.errors import MisuseError, ModelError
from ascend_gym.core.protocols import Message
from ascend_gym.search.llm.limits import WINDOW_S, CallLimits, Clock, MinuteLimit, prompt_bound_tokens
from ascend_gym.search.llm.openai_endpoint import OpenAiEndpoint

MESSAGES = [Message("user", "hello")]


class FakeClock:
    """Time that passes when someone waits."""

    def __init__(self):
        self.now_s, self.waits = 1000.0, []

    def wait(self, seconds):
        self.waits.append(seconds)
        self.now_s += seconds

    @property
    def clock(self):
        return Clock(now_s=lambda: self.now_s, wait=self.wait)


def _endpoint(base_url, time, **limits):
    return OpenAiEndpoint("m", base_url=base_url, api_key=None, limits=CallLimits(**limits), clock=time.clock)


def _complete(endpoint, max_tokens=99, deadline_s=600.0):
    return endpoint.complete(MESSAGES, seed=1, max_tokens=max_tokens, deadline_s=deadline_s)


def _starts(limit, requests, latest_s=1e9):
    booked = [limit.book(tokens, now_s=now_s, latest_s=latest_s) for now_s, tokens in requests]
    return [None if booking is None else booking.start_s for booking in booked]


def test_requests_beyond_the_rate_begin_a_minute_later():
    assert _starts(MinuteLimit(2, None), [(0, 1), (5, 1), (6, 1), (7, 1), (100, 1)]) == [0, 5, 60, 65, 120]


def test_tokens_beyond_the_rate_begin_a_minute_later():
    assert _starts(MinuteLimit(None, 100), [(0, 60), (1, 40), (2, 40), (3, 20)]) == [0, 1, 60, 60]


def test_a_request_larger_than_the_limit_takes_a_minute_alone():
    assert _starts(MinuteLimit(None, 100), [(0, 1), (1, 5000), (2, 1)]) == [0, 60, 120]


def test_no_start_is_booked_after_the_deadline():
    limit = MinuteLimit(1, None)
    assert _starts(limit, [(0, 1), (1, 1)], latest_s=30) == [0, None]
    assert _starts(limit, [(2, 1)]) == [60]


def test_what_a_request_took_replaces_what_it_could_have_taken():
    limit = MinuteLimit(None, 100)
    first = limit.book(100, now_s=0, latest_s=0)
    limit.settle(first, 10)
    assert _starts(limit, [(1, 90)]) == [1]


@given(
    st.one_of(st.none(), st.integers(1, 4)),
    st.one_of(st.none(), st.integers(1, 50)),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 50)), max_size=30),
)
def test_no_minute_holds_more_than_allowed(requests, tokens, calls):
    limit = MinuteLimit(requests, tokens)
    now_s, booked = 0, []
    for pause_s, size in calls:
        now_s += pause_s
        booked.append(limit.book(size, now_s=now_s, latest_s=1e9))
        assert booked[-1].start_s >= now_s
    for first in booked:
        inside = [each for each in booked if first.start_s <= each.start_s < first.start_s + WINDOW_S]
        assert requests is None or len(inside) <= requests
        assert tokens is None or len(inside) == 1 or sum(each.tokens for each in inside) <= tokens
    assert [each.start_s for each in booked] == sorted(each.start_s for each in booked)


def test_calls_wait_for_the_rate_limit():
    time = FakeClock()
    with faulty_server("fine") as base_url:
        endpoint = _endpoint(base_url, time, requests_per_minute=2)
        for _ in range(5):
            _complete(endpoint)
        assert len(log_of(base_url)) == 5
    assert time.waits == [60.0, 60.0]


def test_tokens_are_counted_as_used_once_the_answer_is_there():
    time = FakeClock()
    bound = prompt_bound_tokens(MESSAGES) + 99
    with faulty_server("fine") as base_url:  # each answer reports 120 tokens
        endpoint = _endpoint(base_url, time, tokens_per_minute=240 + bound)
        for _ in range(3):
            _complete(endpoint)
        assert time.waits == []
        _complete(endpoint)
    assert time.waits == [60.0]


def test_a_rate_limit_that_outlasts_the_deadline_is_a_model_error():
    with faulty_server("fine") as base_url:
        endpoint = _endpoint(base_url, FakeClock(), requests_per_minute=1)
        _complete(endpoint)
        with pytest.raises(ModelError, match="rate limits"):
            _complete(endpoint, deadline_s=30.0)
        assert len(log_of(base_url)) == 1


def test_attempts_count_against_the_rate_limit():
    time = FakeClock()
    with faulty_server("broken", "fine") as base_url:
        _complete(_endpoint(base_url, time, requests_per_minute=1))
    assert sum(time.waits) == 60.0


class _CountingServer:
    """Holds every request back until as many as expected are there; counts how many are at a time."""

    def __init__(self, expected):
        self.barrier = threading.Barrier(expected, timeout=180)
        self.lock, self.under_way, self.most = threading.Lock(), 0, 0

    def answer(self, body):
        with self.lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        self.barrier.wait()
        with self.lock:
            self.under_way -= 1
        return {"choices": [{"message": {"content": "hi"}}]}


def test_no_more_calls_than_allowed_are_under_way_at_a_time():
    counting, limits = _CountingServer(3), CallLimits(max_concurrent=3)
    with ChatServer((200, {}, counting.answer)) as server:
        endpoint = OpenAiEndpoint("m", base_url=server.base_url, api_key=None, limits=limits)
        threads = [threading.Thread(target=_complete, args=(endpoint,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(180)
    assert counting.most == 3
    assert counting.under_way == 0
    assert not counting.barrier.broken


def test_waiting_for_a_free_slot_ends_at_the_deadline():
    hold = FakeClock()
    with faulty_server("fine") as base_url:
        endpoint = _endpoint(base_url, hold, max_concurrent=1)
        with endpoint._endpoint._slots, pytest.raises(ModelError, match="all 1 requests allowed"):
            _complete(endpoint, deadline_s=0.01)
        assert _complete(endpoint).text


@pytest.mark.parametrize(
    "name", ["max_attempts", "max_concurrent", "requests_per_minute", "max_answer_bytes"]
)
def test_limits_that_let_nothing_through_are_refused(name):
    with pytest.raises(MisuseError, match=f"{name} must be at least 1, got 0"):
        CallLimits(**{name: 0})


@given(st.lists(st.text(max_size=20), max_size=4))
def test_the_bound_of_a_prompt_covers_a_token_per_byte(texts):
    bound = prompt_bound_tokens([Message("user", text) for text in texts])
    assert bound > sum(len(text.encode("utf-8", "replace")) for text in texts)
