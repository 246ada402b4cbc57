"""Tokens and money of model calls: exact, never beyond the budget, never silently."""

import threading

import pytest

from ascend_gym.core.errors import BudgetExceededError, MisuseError, ModelError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.ledger import Budget, BudgetLedger, Cost
from ascend_gym.search.llm.limits import estimated_tokens
from ascend_gym.search.llm.metering import MeteredLlm, Price

MESSAGES = [Message("user", "hello 块")]
BOUND = estimated_tokens(MESSAGES)
MAX_TOKENS = 100
PRICE = Price(2.0, 10.0)


class Model:
    """Reports the tokens it is told to, or raises."""

    def __init__(self, prompt_tokens=5, completion_tokens=7, *, error=None, text="hi", recorded=False):
        self.completion = Completion(text, prompt_tokens, completion_tokens, "m", recorded)
        self.error, self.calls = error, 0

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        self.calls += 1
        if self.error:
            raise self.error
        return self.completion


def _call(llm):
    return llm.complete(MESSAGES, seed=1, max_tokens=MAX_TOKENS, deadline_s=5.0)


def _metered(model, price=PRICE, **budget):
    ledger = BudgetLedger(Budget(9, **budget))
    return MeteredLlm(model, ledger, price), ledger


def test_what_a_call_cost_is_charged_and_the_rest_given_back():
    llm, ledger = _metered(Model(5, 7), tokens=1000, usd=1.0)
    assert _call(llm).text == "hi"
    assert ledger.spent == Cost(tokens=12, usd=pytest.approx((5 * 2 + 7 * 10) / 1e6))
    assert ledger.reserved == Cost()


@pytest.mark.parametrize("error", [ModelError("down"), KeyboardInterrupt()])
def test_a_call_that_fails_is_refunded(error):
    llm, ledger = _metered(Model(error=error), tokens=1000)
    with pytest.raises(type(error)):
        _call(llm)
    assert ledger.spent == ledger.reserved == Cost()


def test_a_call_is_begun_only_if_the_budget_covers_its_bound():
    model = Model(BOUND, MAX_TOKENS)
    llm, ledger = _metered(model, tokens=2 * (BOUND + MAX_TOKENS) - 1)
    _call(llm)
    with pytest.raises(BudgetExceededError, match="tokens asked for"):
        _call(llm)
    assert model.calls == 1
    assert ledger.spent.tokens == BOUND + MAX_TOKENS


def test_money_is_reserved_too():
    bound_usd = PRICE.cost(BOUND, MAX_TOKENS).usd
    llm, ledger = _metered(Model(), usd=bound_usd * 0.99)
    with pytest.raises(BudgetExceededError, match="usd"):
        _call(llm)
    assert ledger.spent == Cost()


def test_answers_from_a_recording_cost_nothing():
    llm, ledger = _metered(Model(recorded=True), tokens=1000)
    _call(llm)
    assert ledger.spent == ledger.reserved == Cost()


def test_counts_left_out_are_a_token_per_two_and_a_half_bytes():
    llm, ledger = _metered(Model(0, 0, text="块 hi"), tokens=1000)
    _call(llm)
    assert ledger.spent.tokens == BOUND + 3


def test_what_is_reserved_is_near_what_code_takes():
    code = "const uint32_t rest = begin < totalLength ? totalLength - begin : 0;\n" * 100
    assert len(code) / 4 < estimated_tokens([Message("user", code)]) < len(code) / 2


def test_more_than_was_reserved_is_charged_if_the_budget_covers_it():
    llm, ledger = _metered(Model(BOUND + 50, MAX_TOKENS + 30), tokens=1000)
    _call(llm)
    assert ledger.spent.tokens == BOUND + MAX_TOKENS + 80
    assert ledger.reserved == Cost()


def test_more_than_the_budget_is_told_and_never_accounted_beyond_it():
    budget = BOUND + MAX_TOKENS + 10
    llm, ledger = _metered(Model(BOUND, MAX_TOKENS + 11), tokens=budget)
    with pytest.raises(
        BudgetExceededError, match=f"{budget + 1} tokens asked for, {budget} of {budget} left"
    ):
        _call(llm)
    assert ledger.spent.tokens == BOUND + MAX_TOKENS
    assert ledger.reserved == Cost()


def test_money_beyond_the_bound_is_charged_where_only_tokens_are_limited():
    llm, ledger = _metered(Model(0, MAX_TOKENS * 50), tokens=10**6)
    _call(llm)
    assert ledger.spent.usd == pytest.approx(PRICE.cost(BOUND, MAX_TOKENS * 50).usd)


class HeldModel:
    """Answers when it is released; each answer takes one token of those reserved."""

    def __init__(self):
        self.begun, self.release = threading.Semaphore(0), threading.Event()

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        self.begun.release()
        assert self.release.wait(180)
        return Completion("x", 1, 0, "m")


def test_calls_at_a_time_wait_for_each_other_rather_than_fail():
    model = HeldModel()
    llm, ledger = _metered(model, tokens=BOUND + MAX_TOKENS + 10)
    done = []
    threads = [threading.Thread(target=lambda: done.append(_call(llm)), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert model.begun.acquire(timeout=180)
    assert ledger.reserved.tokens == BOUND + MAX_TOKENS
    model.release.set()
    for thread in threads:
        thread.join(180)
    assert len(done) == 4
    assert ledger.spent.tokens == 4 * 2
    assert ledger.reserved == Cost()


def test_a_budget_in_money_needs_a_price():
    with pytest.raises(MisuseError, match="--price"):
        _metered(Model(), price=None, usd=1.0)
    llm, ledger = _metered(Model(), price=None)
    _call(llm)
    assert ledger.spent == Cost(tokens=12)


def test_prices_are_parsed():
    assert Price.parsed("0.28, 0.42") == Price(0.28, 0.42)
    assert Price.parsed("0.28,0.42,0.028") == Price(0.28, 0.42, 0.028)


@pytest.mark.parametrize("text", ["", "1", "1,2,3,4", "1,2,-3", "a,b", "-1,2", "nan,1", "1,inf", "$1,$2"])
def test_what_is_no_price_is_refused(text):
    with pytest.raises(MisuseError, match="price"):
        Price.parsed(text)
