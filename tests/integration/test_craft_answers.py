"""Operators from a specification by a model over HTTP, which answers what people wrote."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from answered_runs import answered_run

from agents.ascend_craft.settings import Lowering
from ascend_gym.cli.methods import Method
from ascend_gym.client import connect
from ascend_gym.core.status import Status
from ascend_gym.search.outcome import SearchOutcome
from ascend_gym.staged.examples import Examples

pytestmark = pytest.mark.slow


def _outcome(folder: Path, daemon: str, method: Method, answers: str, **told: object) -> SearchOutcome:
    settings = {"operator": "generate/swish", "method": method, "budget": 1, **told}
    return answered_run(folder, closing(connect(daemon)), answers, **settings)


def test_four_passes_by_a_model_are_built_one_by_one_and_mended(tmp_path, simulator_daemon):
    outcome = _outcome(
        tmp_path,
        simulator_daemon,
        Method.ASCEND_CRAFT,
        "generate-swish-ascend-craft",
        lowering=Lowering.FOUR_PASSES,
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
def test_direct_generation_from_the_specification(tmp_path, simulator_daemon, method, examples):
    outcome = _outcome(tmp_path, simulator_daemon, method, "generate-swish-best-of-n", examples=examples)
    assert outcome.history[1].result.status is Status.OK, outcome.history[1].result.all_diagnostics
    assert outcome.best.digest != outcome.spec.baseline.digest
