"""The closed set of evaluation statuses, and the one table of their consequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Status(str, Enum):
    """Outcome of an evaluation, or of one case."""

    OK = "ok"
    BUILD_ERROR = "build_error"
    TILING_ERROR = "tiling_error"
    RUNTIME_FAULT = "runtime_fault"
    INCORRECT = "incorrect"
    TIMEOUT = "timeout"
    RESOURCE_LIMIT = "resource_limit"
    GUARD_REJECTED = "guard_rejected"
    UNSUPPORTED = "unsupported"
    INFRA_ERROR = "infra_error"
    CANCELLED = "cancelled"
    INVALID_REQUEST = "invalid_request"


class Blame(str, Enum):
    """Who has to act on a status."""

    NOBODY = "nobody"
    CANDIDATE = "candidate"
    SIMULATOR = "simulator"
    INFRASTRUCTURE = "infrastructure"
    CALLER = "caller"


class RewardRule(str, Enum):
    """How a reward function treats a status."""

    MEASURED = "measured"  # a latency exists: reward it
    FAILURE = "failure"  # the candidate failed: the failure penalty applies
    NEUTRAL = "neutral"  # no verdict on the candidate: no reward, no penalty


@dataclass(frozen=True)
class StatusRule:
    """Consequences of a status.

    Attributes:
        blame: who has to act.
        charged: whether the evaluation counts against the budget.
        retried: whether the daemon retries before reporting it.
        reward: reward rule.
    """

    blame: Blame
    charged: bool
    retried: bool
    reward: RewardRule


_CANDIDATE_FAULT = StatusRule(Blame.CANDIDATE, charged=True, retried=False, reward=RewardRule.FAILURE)

STATUS_RULES: Mapping[Status, StatusRule] = MappingProxyType(
    {
        Status.OK: StatusRule(Blame.NOBODY, charged=True, retried=False, reward=RewardRule.MEASURED),
        Status.BUILD_ERROR: _CANDIDATE_FAULT,
        Status.TILING_ERROR: _CANDIDATE_FAULT,
        Status.RUNTIME_FAULT: _CANDIDATE_FAULT,
        Status.INCORRECT: _CANDIDATE_FAULT,
        Status.TIMEOUT: _CANDIDATE_FAULT,
        Status.RESOURCE_LIMIT: _CANDIDATE_FAULT,
        Status.GUARD_REJECTED: _CANDIDATE_FAULT,
        Status.UNSUPPORTED: StatusRule(
            Blame.SIMULATOR, charged=True, retried=False, reward=RewardRule.FAILURE
        ),
        Status.INFRA_ERROR: StatusRule(
            Blame.INFRASTRUCTURE, charged=False, retried=True, reward=RewardRule.NEUTRAL
        ),
        Status.CANCELLED: StatusRule(Blame.CALLER, charged=False, retried=False, reward=RewardRule.NEUTRAL),
        Status.INVALID_REQUEST: StatusRule(
            Blame.CALLER, charged=False, retried=False, reward=RewardRule.NEUTRAL
        ),
    }
)


def rule_of(status: Status) -> StatusRule:
    """Return the rule of ``status``."""
    return STATUS_RULES[status]
