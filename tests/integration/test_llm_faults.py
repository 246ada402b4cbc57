"""A model behind a real HTTP server process that does everything wrong that a server can."""

import logging
import socket
import time
from contextlib import ExitStack

import pytest
from conftest import FakeEvaluator, make_spec
from openai_faults import COMPLETION_TOKENS, FAULTS, PROMPT_TOKENS, answer_text, faulty_server, log_of

from ascend_gym.core.errors import ModelError, ModelRefusedError
from ascend_gym.core.protocols import Message
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm import openai_client
from ascend_gym.search.llm.limits import CallLimits, Clock
from ascend_gym.search.llm.metering import MeteredLlm
from ascend_gym.search.llm.openai_endpoint import OpenAiEndpoint
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import StopReason, UnusableProposal
from baselines.best_of_n import BestOfN

pytestmark = pytest.mark.slow

KEY = "sk-very-secret-key"
MESSAGES = [Message("user", "hello")]
SPEC = make_spec(tiling="constexpr uint32_t BLOCK_DIM = 8;\n")

RETRIED = (
    *("rate_limited", "broken", "overloaded", "reset", "cut", "not_json", "deep"),
    *("wrong_types", "empty_choices", "error_in_200", "endless", "endless_error", "echo_key_busy"),
)
REFUSALS = ("refusal", "filtered", "prompt_filtered")
UNUSABLE = ("used_up", "no_usage", "large", "echo_key")  # asked for once more
ANSWERS = ("fine", "slow", *REFUSALS, *UNUSABLE)
FAR_S = 1800.0  # no machine is so busy that a refused connection takes a tenth of it
GIVEN_UP = ("drip", "header_drip", "echo_key_error", "redirect")
REFUSED_FOR_GOOD = {"wrong_model": "model", "wrong_key": "key", "no_quota": "quota", "no_money": "quota"}


def _endpoint(base_url, **limits):
    limits = CallLimits(**{"max_answer_bytes": 2**21, **limits})
    return OpenAiEndpoint(
        "m", base_url=base_url, api_key=KEY, limits=limits, clock=Clock(wait=lambda _: None)
    )


def _complete(endpoint, deadline_s=60.0):
    return endpoint.complete(MESSAGES, seed=5, max_tokens=99, deadline_s=deadline_s)


def test_every_fault_is_sorted():
    assert sorted((*RETRIED, *ANSWERS, *GIVEN_UP, *REFUSED_FOR_GOOD)) == sorted(FAULTS)


@pytest.mark.parametrize(("fault", "kind"), REFUSED_FOR_GOOD.items())
def test_what_will_not_pass_is_refused_at_once_by_its_kind(fault, kind):
    with faulty_server(fault) as base_url:
        with pytest.raises(ModelRefusedError) as refused:
            _complete(_endpoint(base_url))
        assert (refused.value.kind, len(log_of(base_url))) == (kind, 1)


def test_what_may_pass_is_asked_again():
    script = [name for fault in RETRIED for name in (fault, "fine")]
    with faulty_server(*script) as base_url:
        endpoint = _endpoint(base_url)
        assert {_complete(endpoint).text for _ in RETRIED} == {answer_text(5)}
        assert [entry["fault"] for entry in log_of(base_url)] == script


@pytest.mark.parametrize("fault", RETRIED)
def test_what_does_not_pass_is_one_clear_error(fault):
    with faulty_server(fault) as base_url:
        with pytest.raises(ModelError, match="model 'm': ") as caught:
            _complete(_endpoint(base_url, max_attempts=2))
        assert len(log_of(base_url)) == 2
    assert len(str(caught.value)) < 1200
    assert KEY not in repr(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("fault", ["drip", "header_drip"])
def test_an_answer_that_never_ends_is_given_up_at_the_deadline(fault):
    with faulty_server(fault) as base_url, pytest.raises(ModelError, match="Timeout"):
        _complete(_endpoint(base_url), deadline_s=0.3)  # else it would go on until the server is closed


def test_a_host_that_does_not_take_the_call_is_given_up_long_before_the_deadline(monkeypatch):
    monkeypatch.setattr(openai_client, "_CONNECT_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as callers:
        for _ in range(4):  # more than fit: the next one finds nobody at home
            caller = callers.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(full.getsockname())
        endpoint = _endpoint(f"http://127.0.0.1:{full.getsockname()[1]}/v1", max_attempts=2)
        began = time.monotonic()
        with pytest.raises(ModelError, match="timed out"):
            _complete(endpoint, deadline_s=FAR_S)
        assert time.monotonic() - began < FAR_S / 10


def test_an_answer_may_take_longer_than_connecting(monkeypatch):
    monkeypatch.setattr(openai_client, "_CONNECT_TIMEOUT_S", 0.02)
    with faulty_server("slow") as base_url:  # thinks for 0.05 s
        assert _complete(_endpoint(base_url)).text == answer_text(5)


def test_redirects_are_not_followed_with_the_key():
    with faulty_server("redirect") as base_url, pytest.raises(ModelError, match="HTTP 307"):
        _complete(_endpoint(base_url))


def test_proxies_are_not_asked_for_this_machine(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with faulty_server("fine") as base_url:
        assert _complete(_endpoint(base_url)).text == answer_text(5)


def test_a_search_accounts_for_every_answer(tmp_path):
    """Each fault that may pass comes before an answer; each sample is one evaluation, usable or not."""
    answered = (ANSWERS * 2)[: len(RETRIED)]
    script = []
    for fault, answer in zip(RETRIED, answered, strict=True):
        script += [fault, answer, *[answer] * (answer in UNUSABLE)]
    with faulty_server(*script) as base_url:
        strategy = BestOfN(SPEC, ModelClient(_endpoint(base_url), seed=3), samples=len(RETRIED))
        ledger = BudgetLedger(Budget(len(RETRIED)))
        with Journal(tmp_path) as journal:
            outcome = run_search(SPEC, strategy, FakeEvaluator(), ledger, journal, in_flight=2)
            proposals = [record for record in journal.records if record["kind"] == "proposal"][1:]
        log = log_of(base_url)
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert outcome.evaluations == len(RETRIED) == len(proposals)
    assert [entry["fault"] for entry in log] == script
    usable = [not isinstance(step.proposal, UnusableProposal) for step in outcome.history[1:]]
    assert usable == [fault in ("fine", "slow") for fault in answered]
    tokens = dict.fromkeys(ANSWERS, (PROMPT_TOKENS, COMPLETION_TOKENS)) | dict.fromkeys(
        ("prompt_filtered", "no_usage"), (0, 0)
    )
    origins = [record["origin"] for record in proposals]
    for fault, origin in zip(answered, origins, strict=True):
        reported = [(call["prompt_tokens"], call["completion_tokens"]) for call in origin["calls"]]
        assert reported == [tokens[fault]] * (2 if fault in UNUSABLE else 1)
    by_fault = dict(zip(answered, origins, strict=True))
    assert by_fault["refusal"]["answer"] == "I will not."
    assert by_fault["filtered"]["answer"] == by_fault["used_up"]["answer"] == ""
    assert KEY not in (tmp_path / "journal.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("refusal", "unusable answer (refused): the model refused: 'I will not.'"),
        ("filtered", "unusable answer (refused): the model refused, or its answer was filtered"),
        ("prompt_filtered", "unusable answer (refused): the model refused: 'HTTP 400: filtered by policy'"),
        ("used_up", "unusable answer (token_limit): the model used up its tokens before it answered"),
    ],
)
def test_the_journal_tells_a_refusal_from_tokens_that_were_used_up(tmp_path, fault, words):
    with faulty_server(fault) as base_url, Journal(tmp_path) as journal:
        strategy = BestOfN(SPEC, ModelClient(_endpoint(base_url), seed=3), samples=1)
        outcome = run_search(SPEC, strategy, FakeEvaluator(), BudgetLedger(Budget(1)), journal)
    assert outcome.history[1].proposal.problem.startswith(words)


def test_a_budget_of_tokens_ends_the_search_within_it(tmp_path):
    limit = 22_000  # each call may take 16,384 tokens and the prompt, and takes 120
    with faulty_server("fine") as base_url:
        ledger = BudgetLedger(Budget(1000, tokens=limit))
        model_client = ModelClient(MeteredLlm(_endpoint(base_url), ledger), seed=3)
        with Journal(tmp_path) as journal:
            strategy = BestOfN(SPEC, model_client, samples=1000)
            outcome = run_search(SPEC, strategy, FakeEvaluator(), ledger, journal)
        calls = len(log_of(base_url))
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert "tokens asked for" in outcome.message
    assert outcome.evaluations == calls > 3
    assert ledger.spent.tokens == calls * (PROMPT_TOKENS + COMPLETION_TOKENS)
    bound = limit - ledger.spent.tokens
    assert 16_384 < bound < 16_384 + 120 + 10_000
    assert ledger.reserved.tokens == 0


def test_the_key_is_nowhere(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with faulty_server("echo_key", "echo_key_error") as base_url:
        endpoint = _endpoint(base_url)
        completion = _complete(endpoint)
        with pytest.raises(ModelError) as caught:
            _complete(endpoint)
    assert completion.text == "I saw Bearer ***"
    everything = (
        completion,
        caught.value,
        endpoint,
        caught.getrepr(chain=True),
        caplog.text,
        capfd.readouterr(),
    )
    assert not [thing for thing in everything if KEY in f"{thing}{thing!r}"]
