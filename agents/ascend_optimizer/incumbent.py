"""What both stages share: the incumbent, what was attempted, and an evaluation as one step of a generator."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.ascend_optimizer.markers import unmarked
from ascend_gym.core.best import becomes_best, is_unwritten
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.rewrites.answer import ParseProblem
from ascend_gym.search.llm.attempts import Attempt, describe_attempts
from ascend_gym.search.llm.merging import Version
from ascend_gym.search.outcome import UnusableProposal


@dataclass(frozen=True)
class Incumbent:
    """A pair (T, K) that compiles and is correct, with its evaluation.

    Attributes:
        candidate: T, with evolution markers once they were synthesised, and K.
        result: its evaluation; ok.
    """

    candidate: Candidate
    result: EvalResult

    @property
    def latency_us(self) -> float:
        """L(T, K): geometric mean over the cases, in microseconds."""
        return self.result.latency_us or float("inf")


Evaluations = Generator[Proposal, EvalResult, Incumbent]
"""A part of the algorithm: yields candidates, is sent their results, returns the incumbent it ends with."""


@dataclass
class Memory:
    """What both stages have attempted, in order; told to the model so that it does not repeat itself."""

    attempts: list[Attempt] = field(default_factory=list)
    versions: dict[int, Version] = field(default_factory=dict)  # what was evaluated, by number of the attempt

    def note(
        self, parent: Incumbent, proposal: Proposal, result: EvalResult, stage: str = "", answer: str = ""
    ) -> None:
        """Remember an attempt with the reason that the answer gave, unless its result says nothing of it.

        Args:
            parent: what was changed.
            proposal: what was evaluated.
            result: how it ended.
            stage: stage of the search, as prompts name it.
            answer: text of the model that gives the reason.
        """
        if rule_of(result.status).reward is not RewardRule.NEUTRAL:
            before, after = unmarked(parent.candidate), unmarked(proposal.candidate)
            self.attempts.append(Attempt.of(before, parent.result, after, result, stage, answer))
            if not isinstance(proposal, UnusableProposal):
                self.versions[len(self.attempts)] = Version(after, result)

    def describe(self, in_full: int | None = None) -> str:
        """Return what is told of the last attempts, the earliest first (see ``describe_attempts``)."""
        return describe_attempts(self.attempts, in_full=in_full)


def evaluate(
    candidate: Candidate | ParseProblem, parent: Incumbent, origin: Mapping[str, Any], answer: str
) -> Generator[Proposal, EvalResult, tuple[Proposal, EvalResult]]:
    """Evaluate what a model made of ``parent``: without markers, or as an unusable answer.

    Args:
        candidate: what was read from the answer.
        parent: what was changed.
        origin: goes into the journal.
        answer: text of the answer, for the journal if it is unusable.
    """
    if isinstance(candidate, ParseProblem):
        base = unmarked(parent.candidate)
        proposal: Proposal = UnusableProposal(base, {**origin, "answer": answer}, str(candidate))
    else:
        proposal = Proposal(unmarked(candidate), origin)
    result = yield proposal
    return proposal, result


def is_better(spec: OpSpec, result: EvalResult, incumbent: Incumbent) -> bool:
    """Say whether a candidate replaces the incumbent: it is faster, or the first correct one of ``spec``."""
    unwritten = is_unwritten(spec, unmarked(incumbent.candidate))
    return becomes_best(result.latency_us, incumbent.latency_us, unwritten=unwritten)
