"""How a run reaches its models: at the endpoint that was named, and never twice with one question."""

import json

import pytest
from chat_server import ChatServer
from experiences import make_experience
from typer.testing import CliRunner

from agents.ascend_optimizer.bank import ExperienceBank
from ascend_gym.cli import app, optimize
from ascend_gym.cli.agent import retriever_of
from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.models import ANSWERS_NAME, ModelAccess, opened_models
from ascend_gym.core.errors import ModelError
from ascend_gym.search.ledger import Budget, BudgetLedger


def _vectors(body):
    rows = [[1.0, float(len(text))] for text in body["input"]]
    return {"data": [{"index": index, "embedding": row} for index, row in enumerate(rows)]}


@pytest.fixture
def settings(tmp_path):
    bank = tmp_path / "bank.jsonl"
    ExperienceBank([make_experience()]).save(bank)
    return RunSettings(operator="toy", bank=str(bank), embedder="e")


def _found(settings, access, folder):
    """Look for experience, as a run in ``folder`` does."""
    folder.mkdir(exist_ok=True)
    with opened_models(settings, access, BudgetLedger(Budget(1)), folder) as models:
        return retriever_of(settings, "core/other", models.embedder).top("slow copies", 1)


def test_embeddings_come_from_the_endpoint_named_and_are_kept_beside_the_journal(
    settings, tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with ChatServer((200, {}, _vectors)) as server:
        access = ModelAccess(base_url=server.base_url)
        first = _found(settings, access, tmp_path / "run")
        asked = len(server.requests)
        assert _found(settings, access, tmp_path / "run") == first
        assert len(server.requests) == asked == 2
    kinds = [json.loads(line).get("kind") for line in (tmp_path / "run" / ANSWERS_NAME).open()]
    assert kinds.count("embedding") == 2


def test_embeddings_are_replayed_from_the_cassette(settings, tmp_path):
    cassette = tmp_path / "shared.jsonl"
    with ChatServer((200, {}, _vectors)) as server:
        access = ModelAccess(base_url=server.base_url, cassette=cassette)
        first = _found(settings, access, tmp_path / "first")
    replay = ModelAccess(base_url="http://127.0.0.1:1/v1", cassette=cassette, replay=True)
    assert _found(settings, replay, tmp_path / "second") == first
    other = settings.model_copy(update={"embedder": "other"})
    with pytest.raises(ModelError, match="holds no 'openai:other' embedding"):
        _found(other, replay, tmp_path / "third")


def test_rates_of_the_command_line_are_limits_of_the_calls(tmp_path, monkeypatch):
    limits = []

    def kept(spec, settings, folder, evaluation, access, **_):
        limits.append(access.limits)

    monkeypatch.setattr(optimize, "_run", kept)
    rates = ["--requests-per-minute", "7", "--tokens-per-minute", "9000", "--concurrency", "3"]
    result = CliRunner().invoke(app, ["optimize", "gelu", "--out", str(tmp_path / "run"), *rates])
    assert result.exit_code == 0, result.output
    (limit,) = limits
    assert (limit.requests_per_minute, limit.tokens_per_minute, limit.max_concurrent) == (7, 9000, 3)
