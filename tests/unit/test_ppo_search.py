"""Search with a policy under the driver that all methods share."""

from contextlib import nullcontext

import pytest
from conftest import FakeEvaluator, make_spec, ok_result

pytest.importorskip("torch", reason="PyTorch is not installed: extra [train]")

from ascend_gym.cli.methods import Method, RunSettings
from ascend_gym.cli.runs import run_in_folder
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import Status
from ascend_gym.env.rewrite_actions import numbered_moves
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.search.outcome import StopReason
from baselines.ppo_policy import network, save_policy

TILING = "constexpr uint32_t TILE_LENGTH = 1024;\nconstexpr uint32_t BLOCK_DIM = 8;\n"
KERNEL = (
    "constexpr int32_t BUFFER_NUM = 1;\nvoid Compute()\n{\n"
    "    Exp(y, x, n);\n    PipeBarrier<PIPE_ALL>();\n    Ln(y, y, n);\n}\n"
)
SPEC = make_spec(tiling=TILING, kernel=KERNEL)


class PricingEvaluator(FakeEvaluator):
    """Prices candidates by their digest; every eighth does not build."""

    def _answer(self, number, request):
        price = int(request.candidate.digest[:4], 16)
        if price % 8 == 0 and request.candidate.digest != SPEC.baseline.digest:
            self.statuses[number] = Status.BUILD_ERROR
            return super()._answer(number, request)
        return ok_result(request, 20.0 + price / 600)


@pytest.fixture(params=["rules", "knobs"])
def checkpoint(request, tmp_path):
    save_policy(tmp_path, request.param, network(request.param, 5).state_dict())
    return tmp_path


def _run(checkpoint, name, budget=12, spec=SPEC, **settings):
    folder = checkpoint / name
    folder.mkdir()
    chosen = RunSettings(
        operator="toy", method=Method.PPO, budget=budget, checkpoint=str(checkpoint), **settings
    )
    outcome = run_in_folder(nullcontext(PricingEvaluator()), folder, spec, chosen)
    return outcome, (folder / JOURNAL_NAME).read_bytes()


def test_proposals_are_rewrites_that_apply_and_that_the_run_does_not_know(checkpoint):
    outcome, _ = _run(checkpoint, "run")
    assert (outcome.stop_reason, outcome.evaluations) == (StopReason.BUDGET_SPENT, 12)
    digests = [step.proposal.candidate.digest for step in outcome.history]
    assert len(set(digests)) == 13
    by_digest = {step.proposal.candidate.digest: step.proposal.candidate for step in outcome.history}
    for step in outcome.history[1:]:
        origin = step.proposal.origin
        if "rule" in origin:
            moves = numbered_moves(by_digest[origin["parent"]]).values()
            results = [move.applied_to(by_digest[origin["parent"]]).digest for move in moves]
            assert step.proposal.candidate.digest in results


def test_the_same_seed_draws_the_same_and_another_seed_does_not(checkpoint):
    (first, one), (_, again), (other, _) = (
        _run(checkpoint, name, seed=seed) for name, seed in (("a", 3), ("b", 3), ("c", 4))
    )
    assert one == again
    drawn = [[step.proposal.candidate.digest for step in outcome.history] for outcome in (first, other)]
    assert drawn[0] != drawn[1]


def test_the_search_ends_when_there_is_nothing_unknown(checkpoint):
    bare = make_spec(tiling="// tiling", kernel="constexpr int32_t BUFFER_NUM = 1;\n")
    outcome, _ = _run(checkpoint, "run", budget=300, spec=bare)
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED
    assert len({step.proposal.candidate.digest for step in outcome.history}) == len(outcome.history) > 1


def test_a_journal_belongs_to_one_policy(checkpoint):
    _, journal = _run(checkpoint, "run")
    assert b'"policy"' in journal
    family = "rules" if b'"rule"' in journal else "knobs"
    save_policy(checkpoint, family, network(family, 6).state_dict())
    chosen = RunSettings(operator="toy", method=Method.PPO, budget=12, checkpoint=str(checkpoint))
    with pytest.raises(MisuseError, match="journal"):
        run_in_folder(nullcontext(PricingEvaluator()), checkpoint / "run", SPEC, chosen)
