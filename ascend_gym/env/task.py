"""Rules of an environment: operators, spaces, the effect of actions, and rewards; no evaluator."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ascend_gym.core.chips import require_chip
from ascend_gym.core.errors import InfrastructureError, MisuseError, OperatorFormatError
from ascend_gym.core.records import (
    Candidate,
    EvalRequest,
    EvalResult,
    MeasureProtocol,
    OpSpec,
    failed_result,
)
from ascend_gym.core.status import Blame, Status, rule_of
from ascend_gym.env.actions import ACTIONS, Mask, no_candidate, require_text
from ascend_gym.env.episode import Episode
from ascend_gym.env.observations import OBSERVATIONS, TextLimits
from ascend_gym.env.reward import RewardFunction, reward_named
from ascend_gym.env.text_observation import PROFILE_FIELDS, profile_vector
from ascend_gym.suite.loader import is_suite, list_operators, load_operator
from ascend_gym.suite.requests import request_for

Family = TypeVar("Family")

MAX_NEUTRAL_IN_A_ROW = 3
"""Number of consecutive evaluations without a verdict after which an episode is truncated."""


@dataclass(frozen=True)
class Trial:
    """The effect of an action.

    Attributes:
        candidate: the candidate that it produces; the incumbent if it produces none.
        request: the evaluation of the candidate.
        result: its result, if it is known without an evaluation.
        vector: numeric encoding of the action; ``None`` if the action family has none.
        move: number of the action, if it has one.
    """

    candidate: Candidate
    request: EvalRequest
    result: EvalResult | None
    vector: np.ndarray[Any, np.dtype[np.float32]] | None = None
    move: int | None = None


class Task:
    """Rules of an environment; ``AscendOpEnv`` explains the arguments.

    Attributes:
        budget: evaluations per episode.
        observation_space: space of observations.
        action_space: space of actions.
        max_source_chars: maximum length of source texts and actions, in characters.
        chip: simulated or measured chip.
        kind: the arguments besides budget and operator on which the meaning of an episode depends.
    """

    def __init__(
        self,
        operator: str | OpSpec | Sequence[str | OpSpec] = "gelu",
        *,
        op_dir: str | None = None,
        actions: str = "sources",
        observations: str = "text",
        budget: int = 20,
        cases: int | None = None,
        chip: str = "910B2",
        reward: str | RewardFunction = "log_improvement",
        failure_penalty: float = 0.0,
        max_source_chars: int = 65536,
        max_diagnostic_chars: int = 8192,
    ) -> None:
        """Load the operators and create the spaces.

        Raises:
            MisuseError: an argument is invalid, or an operator's sources exceed ``max_source_chars``.
        """
        self.budget = _count("budget", budget, "at least 1 evaluation, a whole number")
        self._cases = (
            None if cases is None else _count("cases", cases, "at least 1, a whole number, or None for all")
        )
        self.max_source_chars = max_source_chars
        self._op_dir = op_dir
        self._known: dict[str, OpSpec] = {}
        self._operators = self._all_of(operator)
        self._actions = _named("actions", ACTIONS, actions)(max_source_chars)
        limits = TextLimits(self.budget, max_source_chars, max_diagnostic_chars)
        self._observations = _named("observations", OBSERVATIONS, observations)(self._actions, limits)
        if failure_penalty and not isinstance(reward, str):
            raise MisuseError("failure_penalty goes with the name of a reward, not with a function")
        self._reward = reward_named(reward, failure_penalty) if isinstance(reward, str) else reward
        self.chip = chip = require_chip(chip)
        self._protocol = MeasureProtocol(chip=chip)
        self.kind: Mapping[str, Any] = {"actions": actions, "cases": self._cases, "chip": chip}
        self.observation_space = self._observations.space
        self.action_space = self._actions.space

    @classmethod
    def of_arguments(cls, given: Mapping[str, Any]) -> Task:
        """Create a task from those keyword arguments of an environment that are not its own.

        Raises:
            MisuseError: there is no such argument; or as for the class itself.
        """
        known = inspect.signature(cls).parameters
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                meant = f"did you mean {close[0]!r}? " if close else ""
                raise MisuseError(
                    f"the environment takes no argument {name!r}; {meant}it takes daemon, render_mode, "
                    f"evaluator, {', '.join(known)}"
                )
        return cls(**given)

    @property
    def operators(self) -> Sequence[OpSpec]:
        """The operators from which each episode draws one."""
        return self._operators

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Apply the options of a reset: ``operator`` switches permanently to another operator or several.

        Raises:
            MisuseError: the option does not exist.
        """
        unknown = sorted(set(options) - {"operator"})
        if unknown:
            raise MisuseError(f"unknown reset options {unknown}; the only option is 'operator'")
        if "operator" in options:
            self._op_dir = None
            self._operators = self._all_of(options["operator"])

    def draw(self, rng: np.random.Generator) -> OpSpec:
        """Return the operator of the next episode; random only if there are several."""
        several = len(self._operators) > 1
        return self._operators[rng.integers(len(self._operators)) if several else 0]

    def require_fits(self, spec: OpSpec, candidate: Candidate) -> None:
        """Check that the sources of an operator's candidate fit the spaces.

        Raises:
            MisuseError: a source is longer than ``max_source_chars``.
        """
        for side, text in (("tiling", candidate.tiling_text), ("kernel", candidate.kernel_text)):
            require_text(f"{spec.op_id}: the {side} source", text, self.max_source_chars)

    def baseline_request(self, spec: OpSpec) -> EvalRequest:
        """Return the request that evaluates the baseline."""
        return self._request(spec, spec.baseline)

    def begun(self, spec: OpSpec, result: EvalResult) -> Episode:
        """Return the new episode after ``result``, the evaluation of the operator's own sources.

        Raises:
            MisuseError: the daemon rejected the request as invalid.
            OperatorFormatError: the evaluation of the operator's own sources failed.
            InfrastructureError: nothing could be evaluated.
        """
        _require_measured(spec, result)
        return Episode.start(spec, self.budget, result)

    def trial(self, episode: Episode, action: Any) -> Trial:
        """Return the effect of ``action``.

        Raises:
            MisuseError: the action is outside the action space.
        """
        candidate = self._actions.candidate(episode.spec, episode.incumbent, action)
        in_numbers = self._actions.vector(action), self._actions.number(action)
        if isinstance(candidate, Candidate):
            longest = max(len(candidate.tiling_text), len(candidate.kernel_text))
            if longest <= self.max_source_chars:
                request = self._request(episode.spec, candidate)
                return Trial(candidate, request, None, *in_numbers)
            message = f"a source has {longest} characters, the space holds {self.max_source_chars}"
        else:
            message = candidate.message
        refused = self.refused(episode, message)
        return Trial(refused.candidate, refused.request, refused.result, *in_numbers)

    def refused(self, episode: Episode, message: str) -> Trial:
        """Return the trial of an action that produces no candidate, with ``message`` as the reason."""
        request = self._request(episode.spec, episode.incumbent)
        result = failed_result(request, Status.BUILD_ERROR, no_candidate(message))
        return Trial(episode.incumbent, request, result)

    def after(self, episode: Episode, trial: Trial, result: EvalResult) -> tuple[Episode, float]:
        """Return the episode after a trial ended with ``result``, and the reward."""
        reward = _finite(self._reward(episode.outcome(result)))
        return episode.after(trial.candidate, result, trial.vector, trial.move), reward

    def observe(self, episode: Episode) -> Any:
        """Return the observation, a member of ``observation_space``; later steps do not modify it."""
        return self._observations.observe(episode)

    def info(self, episode: Episode) -> dict[str, Any]:
        """Describe the last evaluation in plain values; nothing depends on time or the cache."""
        result = episode.last_result
        mask = self.mask(episode)
        return {
            "operator": episode.spec.op_id,
            "status": result.status.value,
            "diagnostics": [str(diagnostic) for diagnostic in result.all_diagnostics],
            "candidate_digest": episode.last_candidate.digest,
            "incumbent_digest": episode.incumbent.digest,
            "improved": episode.improved,
            "latency_us": result.latency_us or 0.0,
            "floor_us": episode.incumbent_result.floor_us or 0.0,
            "case_latency_us": {case.case_id: case.latency_us or 0.0 for case in result.cases},
            "profile": dict(zip(PROFILE_FIELDS, profile_vector(result).tolist(), strict=True)),
            "evaluations": episode.spent,
            **({} if mask is None else {"action_mask": mask}),
        }

    def mask(self, episode: Episode) -> Mask | None:
        """Return the mask of valid actions; ``None`` if all are valid."""
        return self._actions.mask(episode.spec, episode.incumbent)

    def _request(self, spec: OpSpec, candidate: Candidate) -> EvalRequest:
        """Return the evaluation of a candidate on the configured number of cases, the smallest first."""
        by_size = sorted(spec.cases, key=lambda case: case.traffic_bytes)
        case_ids = () if self._cases is None else tuple(case.case_id for case in by_size[: self._cases])
        return request_for(spec, candidate, self._protocol, case_ids)

    def _all_of(self, operator: str | OpSpec | Sequence[str | OpSpec]) -> list[OpSpec]:
        """Load the operators that ``operator`` names."""
        if isinstance(operator, str) and is_suite(operator):
            operator = list_operators(operator)
        named = [operator] if isinstance(operator, (str, OpSpec)) else operator
        if not isinstance(named, Sequence) or not all(isinstance(each, (str, OpSpec)) for each in named):
            expected = "a name such as 'gelu', a suite such as 'core', a loaded operator, or a list of these"
            raise MisuseError(f"operator must be {expected}; got {operator!r}")
        if not named:
            raise MisuseError("operator names no operators: give at least one")
        specs = [self._load(one) for one in named]
        self._require_cases(specs)
        self._known |= {spec.op_id: spec for spec in specs}
        return specs

    def _require_cases(self, specs: Sequence[OpSpec]) -> None:
        """Check that at least one of the operators has as many cases as requested.

        Raises:
            MisuseError: none has.
        """
        most = max(specs, key=lambda spec: len(spec.cases))
        if self._cases is not None and self._cases > len(most.cases):
            raise MisuseError(
                f"cases must be at most {len(most.cases)}, as many as {most.op_id} has, or None for all; "
                f"got {self._cases}"
            )

    def _load(self, operator: str | OpSpec) -> OpSpec:
        if isinstance(operator, str) and operator in self._known:
            return self._known[operator]
        if isinstance(operator, OpSpec):
            if self._op_dir is not None:
                raise MisuseError("op_dir goes with the name of an operator, not with a loaded one")
            spec = operator
        else:
            spec = load_operator(operator, op_dir=None if self._op_dir is None else Path(self._op_dir))
        self.require_fits(spec, spec.baseline)
        return spec


def is_terminated(episode: Episode) -> bool:
    """Return whether the budget is spent."""
    return episode.budget_left == 0


def is_truncated(episode: Episode) -> bool:
    """Return whether there were too many consecutive evaluations without a verdict."""
    return episode.neutral_in_a_row >= MAX_NEUTRAL_IN_A_ROW


def is_over(episode: Episode) -> bool:
    """Return whether the episode has ended."""
    return is_terminated(episode) or is_truncated(episode)


def _require_measured(spec: OpSpec, result: EvalResult) -> None:
    if result.latency_us is not None:
        return
    reasons = "; ".join(str(diagnostic) for diagnostic in result.all_diagnostics)
    message = f"{spec.op_id}: the baseline ended as {result.status.value}: {reasons}"
    blame = rule_of(result.status).blame
    if blame is Blame.INFRASTRUCTURE:
        raise InfrastructureError(message)
    if blame is Blame.CALLER:
        raise MisuseError(message)
    raise OperatorFormatError(message)


def _count(argument: str, value: Any, expected: str) -> int:
    """Check a count and return it.

    Raises:
        MisuseError: it is not a whole number, or less than 1.
    """
    try:
        number = index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise MisuseError(f"{argument} must be {expected}; got {value!r}")
    return number


def _named(argument: str, families: Mapping[str, Family], name: str) -> Family:
    if name not in families:
        raise MisuseError(f"{argument} must be one of {', '.join(families)}, got {name!r}")
    return families[name]


def _finite(reward: object) -> float:
    """Return what a reward function returned, if it is a number.

    Raises:
        MisuseError: it is not, or not finite.
    """
    if isinstance(reward, (int, float, np.number)) and math.isfinite(reward):
        return float(reward)
    raise MisuseError(f"the reward function returned {reward!r}: expected a finite number")
