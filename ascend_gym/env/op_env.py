"""``AscendOp-v0``: optimise one Ascend C operator by rewriting its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import gymnasium
from gymnasium.error import ResetNeeded

from ascend_gym.core.errors import InfrastructureError, MisuseError, OperatorFormatError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import (
    Candidate,
    Diagnostic,
    EvalResult,
    MeasureProtocol,
    OpSpec,
    Phase,
    failed_result,
)
from ascend_gym.core.status import Blame, Status, rule_of
from ascend_gym.env.actions import ACTIONS, require_text
from ascend_gym.env.episode import Episode
from ascend_gym.env.evaluation import evaluate
from ascend_gym.env.observations import OBSERVATIONS, Limits
from ascend_gym.env.reward import RewardFunction, reward_named
from ascend_gym.env.spaces import PROFILE_FIELDS, profile_vector
from ascend_gym.suite.loader import is_suite, list_operators, load_operator
from ascend_gym.suite.requests import request_for

Family = TypeVar("Family")

MAX_NEUTRAL_IN_A_ROW = 3
"""Evaluations without a verdict on the candidate after which an episode is truncated."""


class AscendOpEnv(gymnasium.Env[Any, Any]):
    """An episode of optimising one operator under a budget of evaluations.

    The state is the incumbent, the fastest correct candidate so far (at first the operator's own
    sources). An action stands for a candidate: in the family ``sources``, ``{"tiling": ..., "kernel": ...}``
    replaces the whole text of either main source of the incumbent, and an empty text keeps it. The candidate
    is compiled, run, checked and timed; when it is correct and faster it becomes the incumbent. Nothing that
    a candidate does raises.

    The episode terminates when the budget is spent: ``budget_left`` is part of the observation, so the
    end is a property of the state and not an outside time limit. It is truncated after
    ``MAX_NEUTRAL_IN_A_ROW`` evaluations in a row that failed for reasons outside the candidate (a broken
    daemon, say); these are not charged. The evaluation of the baseline on reset is not charged either, and a
    result from the cache is charged like a fresh one, so that an episode does not depend on the cache.

    Args:
        operator: name in an installed suite (``gelu``, ``core/gelu``), a loaded operator, a list of these, or
            the name of a suite (``core``); of several, each reset draws one by its seed.
        op_dir: folder of an operator of your own, of that name.
        actions: action family in ``ascend_gym.env.actions.ACTIONS``.
        observations: observation family in ``ascend_gym.env.observations.OBSERVATIONS``.
        budget: evaluations in an episode, at least 1.
        daemon: address such as ``tcp://10.0.0.5:5710``; by default ``$ASCEND_GYM_DAEMON``, else a private
            daemon with the simulator, started on the first reset.
        chip: the chip whose cycles are counted.
        reward: name in ``ascend_gym.env.reward.REWARDS``, or a function of an ``Outcome``.
        failure_penalty: what a failed candidate costs, for rewards given by name.
        max_source_chars: longest source text in the spaces, in characters.
        max_diagnostic_chars: length in characters to which diagnostics are cut.
        render_mode: ``ansi`` for a summary in words, or ``None``.
        evaluator: an evaluator of the caller's instead of a daemon; the caller closes it.

    Raises:
        MisuseError: an argument cannot be, or the operator's sources do not fit ``max_source_chars``.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[misc]

    def __init__(
        self,
        operator: str | OpSpec | Sequence[str | OpSpec] = "gelu",
        *,
        op_dir: str | None = None,
        actions: str = "sources",
        observations: str = "text",
        budget: int = 20,
        daemon: str | None = None,
        chip: str = "910B2",
        reward: str | RewardFunction = "log_improvement",
        failure_penalty: float = 0.0,
        max_source_chars: int = 65536,
        max_diagnostic_chars: int = 8192,
        render_mode: str | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        if budget < 1:
            raise MisuseError(f"budget must be at least 1 evaluation, got {budget}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise MisuseError(f"render_mode must be None or 'ansi', got {render_mode!r}")
        self.budget = budget
        self.render_mode = render_mode
        self._max_source_chars = max_source_chars
        self._op_dir = op_dir
        self._operators = self._all_of(operator)
        self._spec = self._operators[0]
        self._actions = _named("actions", ACTIONS, actions)(max_source_chars)
        limits = Limits(budget, max_source_chars, max_diagnostic_chars)
        self._observations = _named("observations", OBSERVATIONS, observations)(self._actions, limits)
        self._reward = reward_named(reward, failure_penalty) if isinstance(reward, str) else reward
        self._protocol = MeasureProtocol(chip=chip)
        self._daemon = daemon
        self._evaluator = evaluator
        self._owns_evaluator = evaluator is None
        self._episode: Episode | None = None
        self.observation_space = self._observations.space
        self.action_space = self._actions.space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the operator's own sources.

        Args:
            seed: seeds ``np_random``, which draws one of several operators; nothing else is drawn.
            options: ``{"operator": ...}`` goes over to another operator, or to several, for good.

        Raises:
            MisuseError: an unknown option or operator, or a request that the daemon does not accept.
            OperatorFormatError: the operator's own sources do not evaluate.
            InfrastructureError: nothing could be evaluated.
        """
        super().reset(seed=seed)
        self._choose_operator(options or {})
        result = self._evaluate(self._spec.baseline)
        _require_measured(self._spec, result)
        self._episode = Episode.start(self._spec, self.budget, result)
        return self._observations.observe(self._episode), self._info(self._episode)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Evaluate the candidate that ``action`` stands for.

        Returns:
            Observation, reward, terminated (the budget is spent), truncated (no verdict for too long), info.

        Raises:
            ResetNeeded: there is no episode, or it is over.
            MisuseError: the action is outside the action space.
        """
        before = self._episode
        if before is None or _is_over(before):
            raise ResetNeeded("no episode is under way: call reset() first")
        candidate, result = self._tried(before, action)
        after = before.after(candidate, result, self._actions.vector(action))
        self._episode = after
        return (
            self._observations.observe(after),
            float(self._reward(before.outcome(result))),
            after.budget_left == 0,
            after.neutral_in_a_row >= MAX_NEUTRAL_IN_A_ROW,
            self._info(after),
        )

    def render(self) -> Any:
        """Return a summary in words with ``render_mode="ansi"``, else ``None``."""
        if self.render_mode is None:
            return None
        if self._episode is None:
            return f"{self._spec.op_id}: no episode yet"
        return _summary(self._episode)

    def close(self) -> None:
        """Close the connection, and stop the private daemon, if this environment opened them."""
        self._disconnect()
        self._episode = None

    @property
    def incumbent(self) -> Candidate:
        """The fastest correct candidate so far.

        Raises:
            ResetNeeded: there is no episode.
        """
        if self._episode is None:
            raise ResetNeeded("no episode is under way: call reset() first")
        return self._episode.incumbent

    def _all_of(self, operator: str | OpSpec | Sequence[str | OpSpec]) -> list[OpSpec]:
        """Load what ``operator`` names."""
        if isinstance(operator, str) and is_suite(operator):
            operator = list_operators(operator)
        named = [operator] if isinstance(operator, (str, OpSpec)) else list(operator)
        if not named:
            raise MisuseError("operator names no operators: give at least one")
        return [self._load(one) for one in named]

    def _load(self, operator: str | OpSpec) -> OpSpec:
        if isinstance(operator, OpSpec):
            if self._op_dir is not None:
                raise MisuseError("op_dir goes with the name of an operator, not with a loaded one")
            spec = operator
        else:
            spec = load_operator(operator, op_dir=None if self._op_dir is None else Path(self._op_dir))
        for side, text in (("tiling", spec.baseline.tiling_text), ("kernel", spec.baseline.kernel_text)):
            require_text(f"{spec.op_id}: the {side} source", text, self._max_source_chars)
        return spec

    def _choose_operator(self, options: dict[str, Any]) -> None:
        unknown = sorted(set(options) - {"operator"})
        if unknown:
            raise MisuseError(f"unknown reset options {unknown}; the only option is 'operator'")
        if "operator" in options:
            self._op_dir = None
            self._operators = self._all_of(options["operator"])
        several = len(self._operators) > 1
        self._spec = self._operators[self.np_random.integers(len(self._operators)) if several else 0]

    def _tried(self, before: Episode, action: Any) -> tuple[Candidate, EvalResult]:
        """Return the candidate that an action stands for, and how it did; where it is none, the incumbent."""
        candidate = self._actions.candidate(before.spec, before.incumbent, action)
        if isinstance(candidate, Candidate):
            longest = max(len(candidate.tiling_text), len(candidate.kernel_text))
            if longest <= self._max_source_chars:
                return candidate, self._evaluate(candidate)
            message = f"a source has {longest} characters, the space holds {self._max_source_chars}"
            candidate = Diagnostic(phase=Phase.REQUEST, message=message)
        request = request_for(before.spec, before.incumbent, self._protocol)
        return before.incumbent, failed_result(request, Status.BUILD_ERROR, candidate)

    def _evaluate(self, candidate: Candidate) -> EvalResult:
        request = request_for(self._spec, candidate, self._protocol)
        try:
            return evaluate(self._connected(), request)
        except InfrastructureError as error:  # the next evaluation connects, or starts a daemon, afresh
            self._disconnect()
            diagnostic = Diagnostic(phase=Phase.SERVICE, message=str(error))
            return failed_result(request, Status.INFRA_ERROR, diagnostic)

    def _connected(self) -> Evaluator:
        if self._evaluator is None:
            from ascend_gym.client import DaemonOptions, connect  # sockets are needed only from here on

            self._evaluator = connect(self._daemon, options=DaemonOptions(chip=self._protocol.chip))
        return self._evaluator

    def _disconnect(self) -> None:
        if self._owns_evaluator and self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None

    def _info(self, episode: Episode) -> dict[str, Any]:
        """Describe the last evaluation in plain values: no wall times, nothing that depends on the cache."""
        result = episode.last_result
        mask = self._actions.mask(episode.spec, episode.incumbent)
        return {
            "operator": episode.spec.op_id,
            "status": result.status.value,
            "diagnostics": [str(diagnostic) for diagnostic in result.all_diagnostics],
            "candidate_digest": episode.last_candidate.digest,
            "incumbent_digest": episode.incumbent.digest,
            "improved": episode.spent > 0 and episode.incumbent_result is result,
            "latency_us": result.latency_us or 0.0,
            "case_latency_us": {case.case_id: case.latency_us or 0.0 for case in result.cases},
            "profile": dict(zip(PROFILE_FIELDS, profile_vector(result).tolist(), strict=True)),
            "evaluations": episode.spent,
            **({} if mask is None else {"action_mask": mask}),
        }


def _is_over(episode: Episode) -> bool:
    return episode.budget_left == 0 or episode.neutral_in_a_row >= MAX_NEUTRAL_IN_A_ROW


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


def _named(argument: str, families: Mapping[str, Family], name: str) -> Family:
    if name not in families:
        raise MisuseError(f"{argument} must be one of {', '.join(families)}, got {name!r}")
    return families[name]


def _summary(episode: Episode) -> str:
    last = episode.last_result
    latency = f" {last.latency_us:.2f} us" if last.latency_us is not None else ""
    lines = [
        f"{episode.spec.op_id}: {episode.spent} of {episode.budget} evaluations",
        f"baseline {episode.baseline_latency_us:.2f} us, best {episode.best_latency_us:.2f} us, "
        f"speedup {episode.speedup:.3f}x",
        f"last: {last.status.value}{latency}",
    ]
    return "\n".join(lines + [f"  {diagnostic}" for diagnostic in last.all_diagnostics])
