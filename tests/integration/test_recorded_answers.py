"""Answers that were written from prompts alone, as a model would: asked for over HTTP, read, evaluated."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from answered_runs import RecordedRun, recorded_runs, repeat, speedup_of
from recorded_answers import RecordedAnswers

from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Message
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

pytestmark = pytest.mark.slow

# One run for each method: all of them take minutes, and `python tests/answered_runs.py` repeats them.
REPEATED = (
    "gather-best-of-n",
    "matmul_leaky-iterate",
    "matmul_leaky-openevolve",
    "matmul_leaky-gepa",
    "matmul_leaky-ascend-optimizer",
)


def _runs(names: tuple[str, ...]) -> list[object]:
    runs = {run.name: run for run in recorded_runs()}
    return [
        pytest.param(
            runs[name],
            id=name,
            marks=[
                pytest.mark.skipif(
                    importlib.util.find_spec(package) is None, reason=f"{package} is not installed"
                )
                for package in ("openevolve", "gepa")
                if name.endswith(package)
            ],
        )
        for name in names
    ]


@pytest.fixture(scope="module")
def evaluator(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> InProcessEvaluator:
    """One for all runs: of the same operator's sources they need the same results."""
    return InProcessEvaluator(simulator, tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize("run", _runs(REPEATED))
def test_eight_answers_are_read_as_they_were_meant(
    tmp_path: Path, evaluator: InProcessEvaluator, run: RecordedRun
) -> None:
    """Each is asked for once and ends as it did; nine tenths of the speedup survive changes of prices."""
    folder = tmp_path / "run"
    folder.mkdir()
    outcome, answers = repeat(folder, evaluator, run)
    ended = tuple(step.result.status.value for step in outcome.history[1:])
    assert (ended, answers) == (run.ended, run.questions), outcome.message
    assert speedup_of(outcome) > 0.9 * run.speedup


def test_a_question_asked_again_keeps_its_answer_and_none_beyond_them_is_made_up(tmp_path: Path) -> None:
    (tmp_path / "001.md").write_text("first", "utf-8")
    model = RecordedAnswers(tmp_path)

    def answer(question: str) -> str:
        messages = [Message("user", question)]
        return model.complete(messages, seed=0, max_tokens=9, deadline_s=1.0).text

    assert [answer("a"), answer("a")] == ["first", "first"]
    with pytest.raises(ModelError, match=r"expected an answer in .*002\.md, there is none: write it"):
        answer("b")


def test_an_answer_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "001.md").touch()
    model = RecordedAnswers(tmp_path, wait=True)
    with pytest.raises(ModelError, match="there is none: write it"):
        model.complete([Message("user", "a")], seed=0, max_tokens=9, deadline_s=0.0)
