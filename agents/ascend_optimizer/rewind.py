"""Optimisation rewind: strong implementations made slower, one motif at a time (section 3.4.1, step 1).

A trajectory K(0), K(1), ..., K(T) begins at the strongest implementation known. Each step asks a model to
take out one motif; the result becomes the next K only if it compiles, is correct and slower than K by more
than tau_noise (section 3.4.1, step 2; Algorithm 1 of version 2). The pair is then evidence of what the
motif is worth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.ascend_optimizer.bank import changed_lines
from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Ending, Message, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.report.run_folder import unified_diff
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind, candidate_from_answer
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.prompts import (
    best_of_n_messages,
    chip_of,
    operator_fields,
    render_sources,
    system_message,
)
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import ModelClient, candidate_reader
from ascend_gym.search.outcome import BASELINE_ORIGIN, UnusableProposal

_MARKUP = "*_`# "
_MAX_SITE_CHARS = 160
_MAX_MOTIF_CHARS = 48
_LINE = re.compile(r"^[\W_]{0,20}(motif|site)[\W_]{0,20}?[:=]\s{0,20}(.+)$", re.IGNORECASE | re.MULTILINE)

_BARREN_LIMIT = 2


@dataclass(frozen=True)
class Rewound:
    """A de-optimised candidate.

    Attributes:
        candidate: the operator without the motif.
        motif: the motif, in lower case with underscores.
        site: where it was, in the answer's words; empty if it does not say.
    """

    candidate: Candidate
    motif: str
    site: str


@dataclass(frozen=True)
class Unreadable:
    """An answer that lacks what was asked for."""

    message: str

    def __str__(self) -> str:
        return f"unusable answer: {self.message}"


def rewound_from_answer(
    answer: str, base: Candidate, *, ending: Ending = Ending.COMPLETE
) -> Rewound | ParseProblem:
    """Read motif, site and changed files; ``base`` is the implementation that was to be rewound."""
    candidate = candidate_from_answer(answer, base, ending=ending)
    if isinstance(candidate, ParseProblem):
        return candidate
    said: dict[str, str] = {}
    for match in _LINE.finditer(answer):
        said.setdefault(match[1].lower(), match[2].rstrip().strip(_MARKUP))
    motif = motif_named(said.get("motif", ""))
    if not motif:
        expected = "expected a line 'Motif: <name>' before the changes; there is none"
        return ParseProblem(ProblemKind.INCOMPLETE, expected)
    return Rewound(candidate, motif, " ".join(said.get("site", "").split())[:_MAX_SITE_CHARS])


def motif_named(text: str) -> str:
    """Return ``text`` as the name of a motif, such as ``double_buffer``; empty if there is no word in it."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    name = "_".join(words).lstrip("0123456789_")
    return name[:_MAX_MOTIF_CHARS].rstrip("_")


@dataclass(frozen=True)
class Implementation:
    """A correct candidate and how it was measured.

    Attributes:
        candidate: the sources.
        result: its evaluation.
        latency_us: geometric mean over the cases, in microseconds.
    """

    candidate: Candidate
    result: EvalResult
    latency_us: float

    @classmethod
    def measured(cls, candidate: Candidate, result: EvalResult) -> Implementation | None:
        """Return the candidate as an implementation, or ``None`` if it failed."""
        return None if result.latency_us is None else cls(candidate, result, result.latency_us)


@dataclass(frozen=True)
class RewindStep:
    """A validated pair: ``fast`` = K(t) has the motif, ``slow`` = K(t+1) has not.

    Attributes:
        trajectory: number of the trajectory.
        depth: t.
        motif: name of the motif that was taken out.
        site: where, in the words of whoever took it out.
        fast: the implementation with the motif.
        slow: the implementation without it.
    """

    trajectory: int
    depth: int
    motif: str
    site: str
    fast: Implementation
    slow: Implementation

    @property
    def diff(self) -> str:
        """Unified diff from the slow to the fast version."""
        return unified_diff(self.slow.candidate, self.fast.candidate)


@dataclass(frozen=True)
class RewindSettings:
    """How to rewind.

    Attributes:
        tau_noise: share by which a step must be slower than the one before, such as 0.005.
        strengthen: evaluations spent on making the first implementation faster before it is rewound.
        length: steps after which a trajectory ends.
        patience: failed attempts in a row after which a trajectory ends.
        max_slowdown: a trajectory ends when it is that many times slower than the strongest implementation,
            because what a motif is worth there tells little of good kernels.
    """

    tau_noise: float
    strengthen: int = 0
    length: int = 8
    patience: int = 4
    max_slowdown: float = 8.0


@dataclass(frozen=True)
class _Attempt:
    """A motif that was tried at a site; ``change`` identifies the change of code."""

    motif: str
    site: str
    change: str


class RewindStrategy:
    """Rewinds one operator in trajectory after trajectory. A ``Strategy``: one evaluation per attempt.

    Within a trajectory no motif is taken out twice at one site. An attempt that turns out faster than all
    before is where the next trajectory begins. The strategy ends when ``_BARREN_LIMIT`` trajectories
    in a row had no step.
    """

    def __init__(self, spec: OpSpec, model_client: ModelClient, settings: RewindSettings) -> None:
        """Rewind ``spec.baseline``, the strongest implementation known, by what ``model_client`` is told."""
        self._spec, self._model_client, self._settings = spec, model_client, settings
        self._strongest: Implementation | None = None
        self._current: Implementation | None = None
        self._waiting = False
        self._strengthened = self._attempts = self._trajectory = self._failures = self._barren = 0
        self._taken: list[_Attempt] = []
        self._in_vain: list[_Attempt] = []
        self._failed: list[_Attempt] = []
        self.steps: list[RewindStep] = []

    def propose(self, limit: int) -> list[Proposal]:
        """Return one proposal, or none while one is under way or when there is nothing left to rewind.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover another answer.
        """
        done = self._barren >= _BARREN_LIMIT
        if self._current is None or self._waiting or done or limit < 1:
            return []
        strengthening = self._strengthened < self._settings.strengthen
        proposal = self._faster(self._current) if strengthening else self._slower(self._current)
        self._waiting = True
        return [proposal]

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Take a faster candidate as the strongest, and a slower one as the next of the trajectory."""
        measured = Implementation.measured(proposal.candidate, result)
        if proposal.origin == BASELINE_ORIGIN:
            self._strongest = self._current = measured
        elif self._current is not None:
            self._waiting = False
            if proposal.origin["kind"] == "strengthen":
                self._observe_faster(self._current, measured)
            elif rule_of(result.status).reward is not RewardRule.NEUTRAL:
                self._observe_slower(proposal.origin, self._current, measured)

    def close(self) -> None:
        """Nothing is held."""

    def _faster(self, current: Implementation) -> Proposal:
        """Ask for a faster version of the strongest implementation."""
        stronger = self._spec.model_copy(update={"baseline": current.candidate})
        reading = self._model_client.read(
            best_of_n_messages(stronger, current.result),
            candidate_reader(current.candidate),
            *("strengthen", self._strengthened),
        )
        origin = {"kind": "strengthen", "attempt": self._strengthened, "calls": [*reading.calls]}
        self._strengthened += 1
        if isinstance(reading.value, ParseProblem):
            origin |= {"answer": reading.text}
            return UnusableProposal(current.candidate, origin, str(reading.value))
        return Proposal(reading.value, origin)

    def _observe_faster(self, current: Implementation, measured: Implementation | None) -> None:
        self._strongest = self._current = _faster_of(current, measured)

    def _slower(self, current: Implementation) -> Proposal:
        """Ask for the current implementation without one of its motifs."""
        reading = self._model_client.read(
            self._messages(current),
            lambda answer: rewound_from_answer(answer.text, current.candidate, ending=answer.ending),
            *("rewind", self._trajectory, self._attempts),
        )
        origin: dict[str, Any] = {
            "kind": "rewind",
            "trajectory": self._trajectory,
            "depth": len(self._taken),
            "attempt": self._attempts,
            "calls": [*reading.calls],
        }
        self._attempts += 1
        rewound = reading.value
        if isinstance(rewound, ParseProblem):
            return UnusableProposal(current.candidate, {**origin, "answer": reading.text}, str(rewound))
        attempt = _attempt_of(rewound, current.candidate)
        origin |= {"motif": attempt.motif, "site": attempt.site, "change": attempt.change}
        if attempt.change in {done.change for done in self._taken + self._in_vain}:
            problem = f"{attempt.motif} was tried at {attempt.site} before in this trajectory"
            return UnusableProposal(current.candidate, origin, problem)
        return Proposal(rewound.candidate, origin)

    def _observe_slower(
        self, origin: Mapping[str, Any], current: Implementation, measured: Implementation | None
    ) -> None:
        attempt = _Attempt(origin["motif"], origin["site"], origin["change"]) if "motif" in origin else None
        threshold_us = current.latency_us * (1.0 + self._settings.tau_noise)
        if attempt is not None and measured is not None and measured.latency_us > threshold_us:
            depth = len(self._taken)
            self.steps.append(
                RewindStep(self._trajectory, depth, attempt.motif, attempt.site, current, measured)
            )
            self._taken.append(attempt)
            self._current, self._failures = measured, 0
        else:
            self._failures += 1
            self._strongest = _faster_of(self._strongest, measured)
            self._in_vain += [] if attempt is None else [attempt]
            self._failed += [] if attempt is None or measured is not None else [attempt]
        if self._trajectory_is_over():
            self._begin_trajectory()

    def _trajectory_is_over(self) -> bool:
        settings, strongest, current = self._settings, self._strongest, self._current
        long = len(self._taken) >= settings.length or self._failures >= settings.patience
        if long or strongest is None or current is None:
            return True
        return current.latency_us > strongest.latency_us * settings.max_slowdown

    def _begin_trajectory(self) -> None:
        """Go back to the strongest implementation; what did not work at all is not tried again."""
        self._barren = 0 if self._taken else self._barren + 1
        self._current = self._strongest
        self._trajectory += 1
        self._failures = 0
        self._taken, self._in_vain = [], list(self._failed)

    def _messages(self, current: Implementation) -> list[Message]:
        known = [step for step in self.steps if step.trajectory < self._trajectory]
        user = render(
            "rewind",
            package=__package__,
            **operator_fields(self._spec),
            category=self._spec.category,
            description=self._spec.description,
            chip=chip_of(current.result),
            measurement=describe_result(current.result),
            taken=_listed((done.motif, done.site) for done in self._taken),
            in_vain=_listed((done.motif, done.site) for done in self._in_vain),
            known=_listed((step.motif, step.site) for step in known),
            sources=render_sources(current.candidate),
        )
        return [system_message(self._spec, current.candidate, current.result), Message("user", user)]


def _faster_of(one: Implementation | None, other: Implementation | None) -> Implementation | None:
    """Return the faster of two, the first if they are equal."""
    measured = [each for each in (one, other) if each is not None]
    return min(measured, key=lambda each: each.latency_us, default=None)


def _attempt_of(rewound: Rewound, current: Candidate) -> _Attempt:
    """Identify an attempt by its motif and the lines that it changes, whatever it calls its site."""
    lines = changed_lines(unified_diff(rewound.candidate, current))
    return _Attempt(rewound.motif, rewound.site, digest_of("rewind", rewound.motif, lines))


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    lines = dict.fromkeys(f"- {motif}: {site}" for motif, site in pairs)
    return "\n".join(lines) or "- nothing"
