"""Runs over HTTP whose model answers from a folder of tests/data/answers.

    python tests/answered_runs.py [NAME...]

repeats the runs that ``runs.toml`` of that folder lists, and prints what each comes to.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from recorded_answers import MODEL, RecordedAnswers

from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.models import ModelAccess
from ascend_gym.cli.runs import operator_of, run_in_folder
from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.toml_file import read_toml
from ascend_gym.search.llm.server import LlmServer
from ascend_gym.search.outcome import SearchOutcome
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

_TESTS = Path(__file__).parent
_ANSWERS = _TESTS / "data" / "answers"


@dataclass(frozen=True)
class RecordedRun:
    """A run whose answers were written from its prompts.

    Attributes:
        name: folder of its answers.
        settings: operator, method and options.
        ended: status of each evaluation behind the baseline's, in order.
        questions: how many answers the evaluations took, with diagnoses, templates and repeated answers.
        speedup: of the best, over the operator's own sources, when the answers were written.
    """

    name: str
    settings: dict[str, object]
    ended: tuple[str, ...]
    questions: int
    speedup: float


def recorded_runs() -> list[RecordedRun]:
    """Return the runs that ``runs.toml`` lists."""
    table = read_toml(_ANSWERS / "runs.toml")
    runs = []
    for name, run in table.items():
        settings = {"budget": len(run["ended"]), **run["settings"]}
        if "op_dir" in settings:
            settings["op_dir"] = str(_TESTS / settings["op_dir"])
        runs.append(RecordedRun(name, settings, tuple(run["ended"]), run["questions"], run["speedup"]))
    return runs


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


def repeat(folder: Path, evaluator: Evaluator, run: RecordedRun) -> tuple[SearchOutcome, int]:
    """Execute a recorded run in an empty folder; return what it found and how many answers it was given."""
    outcome = answered_run(folder, nullcontext(evaluator), run.name, **run.settings)
    lines = (folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    return outcome, sum(json.loads(line)["kind"] == "answer" for line in lines)


def speedup_of(outcome: SearchOutcome) -> float:
    """Return the latency of the operator's own sources over that of the best candidate."""
    return outcome.history[0].result.latency_us / outcome.best_latency_us


def main() -> None:
    """Repeat runs and print a line for each."""
    simulator = SimulatorBackend(cache_root())
    for run in recorded_runs():
        if sys.argv[1:] and run.name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
            outcome, questions = repeat(Path(folder), InProcessEvaluator(simulator, Path(cache)), run)
        latencies = [
            f"{step.result.latency_us:.2f}" if step.result.latency_us else step.result.status.value
            for step in outcome.history
        ]
        told = outcome.message or f"{questions} answers"
        print(f"{run.name}: {speedup_of(outcome):.3f} ({told}): {' '.join(latencies)}", flush=True)


if __name__ == "__main__":
    main()
