"""Settings of AscendOptimizer: schedule, ablations, lengths of the stages, retrieval and population."""

from __future__ import annotations

from enum import Enum

from pydantic import BaseModel, ConfigDict, Field, model_validator

SWITCH_EVERY = 10
"""Evaluations after which ``alternate`` changes stages (version 1, section 4.4.2)."""


class Schedule(str, Enum):
    """In which order the two stages run."""

    ALTERNATE = "alternate"
    """Version 1, Algorithm 1: U steps of tiling search, then S of kernel refinement, round after round."""
    REFINE_THEN_TILE = "refine-then-tile"
    """Version 2, Algorithm 2: S steps of kernel refinement, then U of tiling search; several passes."""


class Preset(str, Enum):
    """The schedules of the papers."""

    PAPER_V1 = "paper-v1"
    """Version 1: ``alternate``, with ten steps of each stage (section 4.4.2)."""
    PAPER_V2 = "paper-v2"
    """Version 2: a single pass of ``refine-then-tile``, half of the budget for each stage."""


class Refinement(str, Enum):
    """What a step of refinement asks, and may change."""

    PAPER = "paper"
    """As in the papers: a diagnosis, then a rewrite of K under a fixed T; tiling search beside it."""
    JOINT = "joint"
    """One question about both; tiling search only once refinement finds nothing more (see ``joint.py``)."""


class Ablation(str, Enum):
    """What a variant of the method goes without."""

    TILING = "tiling"
    KERNEL = "kernel"
    EXPERIENCE = "experience"
    RETRIEVAL = "retrieval"
    """Experience is drawn at random instead of retrieved."""


class AgentSettings(BaseModel):
    """What decides how AscendOptimizer spends its evaluations.

    Attributes:
        schedule: order of the stages.
        refinement: what a step of refinement asks, and may change.
        ablate: what to go without.
        tiling_steps: U, the steps of one pass of tiling search.
        refine_steps: S, the steps of one pass of kernel refinement.
        first_steps: the most steps of a pass of the first round, and one more of each further round, up to
            U and S; ``None``, as in the papers, for U and S from the beginning.
        patience: steps in vain after which a pass ends before its length; ``None``, as in the papers, for
            never.
        rounds: R, how often both stages run; ``None`` for as long as the budget lasts.
        top_k: k, how many pieces of experience a step of refinement is shown.
        islands: populations of the tiling search that evolve apart; step u works on island u mod islands.
        population: survivors that each island keeps; the fastest is the parent, the others are shown.
        migrate_every: steps after which the fastest survivor of all islands enters each of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schedule: Schedule = Schedule.REFINE_THEN_TILE
    refinement: Refinement = Refinement.PAPER
    ablate: tuple[Ablation, ...] = ()
    tiling_steps: int = Field(default=SWITCH_EVERY, ge=1)
    refine_steps: int = Field(default=SWITCH_EVERY, ge=1)
    first_steps: int | None = Field(default=None, ge=1)
    patience: int | None = Field(default=None, ge=1)
    rounds: int | None = Field(default=None, ge=1)
    top_k: int = Field(default=3, ge=1)
    islands: int = Field(default=1, ge=1)
    population: int = Field(default=3, ge=1)
    migrate_every: int = Field(default=5, ge=1)

    @model_validator(mode="after")
    def _something_is_left(self) -> AgentSettings:
        if {Ablation.TILING, Ablation.KERNEL} <= set(self.ablate):
            raise ValueError("without tiling search and without kernel refinement there is nothing to do")
        return self

    @property
    def retrieval_key(self) -> str:
        """The part of an experience that a diagnosis is compared with: that of the version in use."""
        return "bottleneck" if self.schedule is Schedule.ALTERNATE else "bottleneck+applicability"

    def steps_in(self, round_: int, most: int) -> int:
        """Return how many steps a pass of a round (1, 2, ...) has that may have ``most``."""
        return most if self.first_steps is None else min(most, self.first_steps + round_ - 1)

    def place_in(self, round_: int, step: int, most: int) -> str:
        """Return which step (0, 1, ...) of such a pass it is, in words."""
        return f"{step + 1} of at most {self.steps_in(round_, most)}"

    def without(self, part: Ablation) -> bool:
        """Say whether ``part`` is ablated."""
        return part in self.ablate
