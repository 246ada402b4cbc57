"""Runs over HTTP whose model answers from a folder of tests/data/answers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from recorded_answers import MODEL, RecordedAnswers

from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.models import ModelAccess
from ascend_gym.cli.runs import operator_of, run_in_folder
from ascend_gym.core.protocols import Evaluator
from ascend_gym.search.llm.server import LlmServer
from ascend_gym.search.outcome import SearchOutcome

_ANSWERS = Path(__file__).with_name("data") / "answers"


def answered_run(
    folder: Path, opening: AbstractContextManager[Evaluator], answers: str, **settings: object
) -> SearchOutcome:
    """Execute the search that ``settings`` describe, with the answers of that name."""
    chosen = RunSettings.model_validate({"model": MODEL, **settings})
    models = {MODEL: RecordedAnswers(_ANSWERS / answers)}
    with pytest.MonkeyPatch.context() as patch, LlmServer(models) as server:
        patch.setenv("OPENAI_API_KEY", "none")
        access = ModelAccess(base_url=server.base_url)
        return run_in_folder(opening, folder, operator_of(chosen), chosen, access=access)
