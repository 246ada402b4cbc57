"""Limits that processes share: rates of a host, money and tokens of a sweep, whoever dies in between."""

import json
import multiprocessing
import os

import pytest

from ascend_gym.core.errors import InfrastructureError, MisuseError, ModelError, ModelRefusedError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.ledger import Cost
from ascend_gym.search.llm.limits import WINDOW_S, Clock
from ascend_gym.search.llm.metering import Price, SweepMeteredLlm
from ascend_gym.search.llm.shared_limits import SharedBudget, SharedMinuteLimit

RUNS = 30
FORK = multiprocessing.get_context("fork")


def _booked(folder, answers, requests, tokens):
    limit = SharedMinuteLimit(folder, "model", requests, tokens)
    booking = limit.book(100, now_s=1000.0, latest_s=2000.0)
    answers.put(booking.start_s)


def _in_processes(target, *arguments):
    answers = FORK.Queue()
    children = [
        FORK.Process(target=target, args=(arguments[0], answers, *arguments[1:])) for _ in range(RUNS)
    ]
    for child in children:
        child.start()
    told = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    return told


def _most_within_a_minute(starts):
    return max(sum(begin <= each < begin + WINDOW_S for each in starts) for begin in starts)


def test_thirty_runs_keep_to_one_rate_of_requests(tmp_path):
    starts = _in_processes(_booked, tmp_path / "rates", 8, None)
    assert _most_within_a_minute(starts) == 8
    assert max(starts) == 1000.0 + WINDOW_S * ((RUNS - 1) // 8)


def test_thirty_runs_keep_to_one_rate_of_tokens(tmp_path):
    starts = _in_processes(_booked, tmp_path / "rates", None, 500)
    assert _most_within_a_minute(starts) == 5


def test_what_a_request_took_makes_room_and_what_comes_too_late_books_nothing(tmp_path):
    limit = SharedMinuteLimit(tmp_path / "rates", "model", None, 1000)
    first = limit.book(900, now_s=0.0, latest_s=10.0)
    assert limit.book(200, now_s=1.0, latest_s=10.0) is None
    limit.settle(first, 100)
    assert limit.book(200, now_s=1.0, latest_s=10.0).start_s == 1.0
    assert limit.book(1000, now_s=WINDOW_S + 1.0, latest_s=WINDOW_S + 1.0).start_s == WINDOW_S + 1.0


def _spent(path, answers, tokens):
    shared = SharedBudget(path, tokens=tokens)
    try:
        while (ticket := shared.reserve(Cost(tokens=10))) is None:
            continue
        shared.settle(ticket, Cost(tokens=7))
        answers.put(7)
    except ModelRefusedError as error:
        answers.put(error.kind)


def test_thirty_runs_never_spend_more_than_the_sweep_may(tmp_path):
    told = _in_processes(_spent, tmp_path / "spent.json", 100)
    spent = SharedBudget(tmp_path / "spent.json", tokens=100).spent.tokens
    assert spent == 7 * told.count(7) == 91  # the last ten do not fit any more
    assert set(told) == {7, "sweep_budget"}


def test_what_others_hold_is_waited_for_and_what_the_dead_held_is_free(tmp_path):
    path = tmp_path / "spent.json"
    shared = SharedBudget(path, tokens=100)
    ticket = shared.reserve(Cost(tokens=60))
    assert shared.reserve(Cost(tokens=60)) is None
    state = json.loads(path.read_bytes())
    host, _, number = ticket.rsplit(":", 2)
    child = FORK.Process(target=os._exit, args=(0,))
    child.start()
    child.join()
    state["held"][0]["ticket"] = f"{host}:{child.pid}:{number}"
    path.write_text(json.dumps(state))
    assert shared.reserve(Cost(tokens=60)) is not None


class Priced:
    """Reports what it is told to have read and written."""

    def __init__(self, *tokens):
        self.tokens = list(tokens)

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        given = self.tokens.pop(0)
        if given is None:
            raise ModelError("broken")
        read, written, cached = given
        return Completion("text", read, written, "m", cached_tokens=cached)


def _ask(metered, max_tokens=100):
    return metered.complete([Message("user", "a")], seed=0, max_tokens=max_tokens, deadline_s=1.0)


def test_money_of_a_sweep_is_what_answers_cost_with_what_was_cached(tmp_path):
    shared = SharedBudget(tmp_path / "spent.json", usd=0.01)
    price = Price.parsed("10,100,1")
    metered = SweepMeteredLlm(Priced((1000, 10, 900), None), shared, price)
    _ask(metered, max_tokens=10)
    assert shared.spent.usd == pytest.approx((100 * 10 + 900 * 1 + 10 * 100) / 1e6)
    with pytest.raises(ModelError, match="broken"):
        _ask(metered, max_tokens=10)
    assert shared.spent.usd == pytest.approx(0.0029)  # a call that fails costs nothing
    with pytest.raises(ModelRefusedError, match=r"has spent 1010 tokens, 0\.0029 US dollars") as refused:
        _ask(metered)
    assert refused.value.kind == "sweep_budget"


def test_a_call_gives_up_where_others_hold_what_is_left(tmp_path):
    shared = SharedBudget(tmp_path / "spent.json", tokens=200)
    shared.reserve(Cost(tokens=150))
    passed = [0.0]
    clock = Clock(lambda: passed[0], lambda seconds: passed.__setitem__(0, passed[0] + seconds))
    with pytest.raises(ModelError, match="other runs of the sweep held what is left"):
        _ask(SweepMeteredLlm(Priced(), shared, None, clock))


def test_folders_and_files_that_cannot_be_shared_are_told(tmp_path):
    with pytest.raises(MisuseError, match="a folder that all of its hosts share"):
        SharedBudget(tmp_path / "none" / "spent.json", tokens=1)
    (tmp_path / "spent.json").write_text("{")
    with pytest.raises(InfrastructureError, match="cannot be shared between runs"):
        SharedBudget(tmp_path / "spent.json", tokens=1).reserve(Cost(tokens=1))
