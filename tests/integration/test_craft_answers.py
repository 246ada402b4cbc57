"""Operators from a specification by a model over HTTP, which answers what people wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded_answers import MODEL, RecordedAnswers

from agents.ascend_craft.settings import Lowering
from ascend_gym.cli.methods import Method, RunSettings
from ascend_gym.cli.models import ModelAccess
from ascend_gym.cli.runs import operator_of, run_in_folder
from ascend_gym.client import connect
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.status import Status
from ascend_gym.search.llm.server import LlmServer
from ascend_gym.search.outcome import SearchOutcome
from ascend_gym.staged.examples import Examples

pytestmark = pytest.mark.slow

ANSWERS = Path(__file__).parents[1] / "data" / "answers"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.fixture
def daemon(simulator_daemon: str) -> Iterator[Evaluator]:
    evaluator = connect(simulator_daemon)
    yield evaluator
    evaluator.close()


def _outcome(
    folder: Path, evaluator: Evaluator, method: Method, answers: str, **told: object
) -> SearchOutcome:
    settings = RunSettings(operator="generate/swish", method=method, model=MODEL, budget=1, **told)
    with LlmServer({MODEL: RecordedAnswers(ANSWERS / answers)}) as server:
        access = ModelAccess(base_url=server.base_url)
        return run_in_folder(folder, operator_of(settings), settings, evaluator, access=access)


def test_four_passes_by_a_model_are_built_one_by_one_and_mended(tmp_path, daemon):
    outcome = _outcome(
        tmp_path, daemon, Method.ASCEND_CRAFT, "generate-swish-ascend-craft", lowering=Lowering.FOUR_PASSES
    )
    program = outcome.history[1]
    assert program.result.status is Status.OK, program.result.all_diagnostics
    passes = program.proposal.origin["passes"]
    assert [each["pass"] for each in passes] == ["plan", "state", "stages", "align"]
    assert [each["builds"] for each in passes] == [1, 1, 2, 1]
    assert "Negate" in passes[2]["objections"][0]
    assert outcome.spent.builds == 5
    assert outcome.spent.tokens > 0


@pytest.mark.parametrize("method", [Method.BEST_OF_N, Method.ITERATE])
@pytest.mark.parametrize("examples", [Examples.NONE, Examples.CATEGORY])
def test_direct_generation_from_the_specification(tmp_path, daemon, method, examples):
    outcome = _outcome(tmp_path, daemon, method, "generate-swish-best-of-n", examples=examples)
    assert outcome.history[1].result.status is Status.OK, outcome.history[1].result.all_diagnostics
    assert outcome.best.digest != outcome.spec.baseline.digest
