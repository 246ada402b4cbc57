"""Cassettes: a run is paid for once, can be replayed for free, and resumes with the same accounts."""

import threading

import pytest
from conftest import FakeEvaluator, make_spec
from openai_faults import COMPLETION_TOKENS, PROMPT_TOKENS, faulty_server, log_of

from ascend_gym.core.errors import MisuseError, ModelError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.cassette import CassetteLlm, CassetteMode, question_digest
from ascend_gym.search.llm.limits import Clock
from ascend_gym.search.llm.metering import MeteredLlm, Price
from ascend_gym.search.llm.openai_endpoint import OpenAiEndpoint
from ascend_gym.search.model_client import ModelClient
from baselines.best_of_n import BestOfN

KEY = "sk-very-secret-key"
MESSAGES = [Message("user", "hello")]
SPEC = make_spec(tiling="constexpr uint32_t BLOCK_DIM = 8;\n")
SAMPLES = 5
RECORD, REPLAY, RESUME = CassetteMode.RECORD, CassetteMode.REPLAY, CassetteMode.RESUME


class Counting:
    """Answers with how often it was asked."""

    def __init__(self, *, recorded=False):
        self.asked, self.recorded = 0, recorded

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        self.asked += 1
        return Completion(f"answer {self.asked}", 3, 4, "m", self.recorded)


def _ask(llm, seed=1, messages=MESSAGES, max_tokens=9):
    return llm.complete(messages, seed=seed, max_tokens=max_tokens, deadline_s=5.0)


def _search(folder, llm, ledger):
    with Journal(folder) as journal:
        strategy = BestOfN(SPEC, ModelClient(llm, seed=3), samples=SAMPLES)
        return run_search(SPEC, strategy, FakeEvaluator(), ledger, journal)


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 2},
        {"max_tokens": 8},
        {"messages": [Message("system", "hello")]},
        {"messages": [*MESSAGES, *MESSAGES]},
    ],
)
def test_another_question_is_asked(tmp_path, other):
    model = Counting()
    cassette = CassetteLlm(model, tmp_path / "a.jsonl", RECORD, model="m")
    assert _ask(cassette).text == _ask(cassette).text == "answer 1"
    assert _ask(cassette, **other).text == "answer 2"


def test_models_share_a_file_but_not_answers(tmp_path):
    model = Counting()
    for name in ("a", "b", "a"):
        cassette = CassetteLlm(model, tmp_path / "a.jsonl", RECORD, model=name)
        _ask(cassette)
        cassette.close()
    assert model.asked == 2


def test_an_unknown_question_is_an_error_that_names_question_and_file(tmp_path):
    path = tmp_path / "a.jsonl"
    CassetteLlm(Counting(), path, RECORD, model="m").close()
    with pytest.raises(ModelError) as caught:
        _ask(CassetteLlm(Counting(), path, REPLAY, model="m"))
    assert question_digest("m", MESSAGES, 1, 9) in str(caught.value)
    assert str(path) in str(caught.value)


def test_replay_creates_no_file(tmp_path):
    with pytest.raises(MisuseError, match="no such file"):
        CassetteLlm(None, tmp_path / "a.jsonl", REPLAY, model="m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [RECORD, RESUME])
def test_recording_needs_a_model(tmp_path, mode):
    with pytest.raises(MisuseError, match="needs a model"):
        CassetteLlm(None, tmp_path / "a.jsonl", mode, model="m")


def test_a_damaged_answer_is_told(tmp_path):
    path = tmp_path / "a.jsonl"
    cassette = CassetteLlm(Counting(), path, RECORD, model="m")
    _ask(cassette)
    cassette.close()
    path.write_text(path.read_text().replace('"prompt_tokens":3', '"prompt_tokens":"3"'))
    with pytest.raises(MisuseError, match="damaged answer"):
        _ask(CassetteLlm(None, path, REPLAY, model="m"))


def test_a_failure_is_not_recorded(tmp_path):
    class Failing:
        def complete(self, messages, *, seed, max_tokens, deadline_s):
            raise ModelError("down")

    path = tmp_path / "a.jsonl"
    cassette = CassetteLlm(Failing(), path, RECORD, model="m")
    with pytest.raises(ModelError, match="down"):
        _ask(cassette)
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("mode", "inner_recorded", "recorded"),
    [(RECORD, False, True), (REPLAY, False, True), (RESUME, False, False), (RESUME, True, True)],
)
def test_only_a_resumed_run_pays_again_for_what_it_had_paid(tmp_path, mode, inner_recorded, recorded):
    path = tmp_path / "a.jsonl"
    first = CassetteLlm(Counting(recorded=inner_recorded), path, RESUME, model="m")
    assert _ask(first).recorded is inner_recorded
    first.close()
    assert _ask(CassetteLlm(Counting(), path, mode, model="m")).recorded is recorded


def test_threads_with_one_question_ask_it_once(tmp_path):
    begun, release = threading.Event(), threading.Event()

    class Held(Counting):
        def complete(self, messages, **options):
            begun.set()
            assert release.wait(180)
            return super().complete(messages, **options)

    model, answers = Held(), []
    cassette = CassetteLlm(model, tmp_path / "a.jsonl", RECORD, model="m")
    threads = [threading.Thread(target=lambda: answers.append(_ask(cassette).text)) for _ in range(6)]
    for thread in threads:
        thread.start()
    assert begun.wait(180)
    with pytest.raises(ModelError, match="under way"):
        cassette.complete(MESSAGES, seed=1, max_tokens=9, deadline_s=0.01)
    release.set()
    for thread in threads:
        thread.join(180)
    assert answers == ["answer 1"] * 6
    assert model.asked == 1


def test_many_threads_record_whole_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    cassette = CassetteLlm(Counting(), path, RECORD, model="m")
    long = [Message("user", "x" * 20_000)]
    threads = [threading.Thread(target=_ask, args=(cassette, seed, long)) for seed in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    cassette.close()
    replay = CassetteLlm(None, path, REPLAY, model="m")
    assert len({_ask(replay, seed, long).prompt_tokens for seed in range(24)}) == 1
    assert path.read_text().count('"kind":"prompt"') == 1
    assert path.read_text().count('"kind":"answer"') == 24


def test_a_paid_run_is_replayed_for_free_with_the_same_journal(tmp_path):
    tape = tmp_path / "tape.jsonl"
    paid, free = (BudgetLedger(Budget(SAMPLES, tokens=10**6)) for _ in range(2))
    with faulty_server("fine") as base_url:
        endpoint = OpenAiEndpoint("m", base_url=base_url, api_key=KEY)
        recording = CassetteLlm(endpoint, tape, RECORD, model="m")
        _search(tmp_path / "paid", MeteredLlm(recording, paid), paid)
        recording.close()
        assert len(log_of(base_url)) == SAMPLES
    replay = CassetteLlm(None, tape, REPLAY, model="m")
    _search(tmp_path / "free", MeteredLlm(replay, free), free)
    journals = [(tmp_path / run / JOURNAL_NAME).read_bytes() for run in ("paid", "free")]
    assert journals[0] == journals[1]
    assert paid.spent.tokens == SAMPLES * (PROMPT_TOKENS + COMPLETION_TOKENS)
    assert free.spent.tokens == 0
    for path in tmp_path.rglob("*.jsonl"):
        text = path.read_text("utf-8")
        assert KEY not in text
        assert "127.0.0.1" not in text


def test_a_resumed_run_asks_only_what_it_had_not_and_ends_with_the_same_accounts(tmp_path):
    def run(folder, base_url, journal):
        ledger = BudgetLedger(Budget(SAMPLES, usd=1.0))
        endpoint = OpenAiEndpoint("m", base_url=base_url, api_key=None, clock=Clock(wait=lambda _: None))
        answers = CassetteLlm(endpoint, tmp_path / folder / "answers.jsonl", RESUME, model="m")
        _search(tmp_path / folder / journal, MeteredLlm(answers, ledger, Price(1.0, 2.0)), ledger)
        answers.close()
        return ledger.spent

    with faulty_server("fine") as base_url:
        unbroken = run("unbroken", base_url, "journal")
    path = tmp_path / "broken" / "answers.jsonl"
    with faulty_server("fine", "fine", "broken") as base_url:  # the model goes down after two answers
        run("broken", base_url, "lost")
    path.write_bytes(path.read_bytes() + b'{"kind":"ans')
    with faulty_server("fine") as base_url:
        assert run("broken", base_url, "journal") == unbroken
        assert len(log_of(base_url)) == SAMPLES - 2
    journals = [(tmp_path / run_ / "journal" / JOURNAL_NAME).read_bytes() for run_ in ("unbroken", "broken")]
    assert journals[0] == journals[1]
