"""Records of the results store: runs, evaluations, source texts, sessions and operators.

Field names are column names; ``schema.py`` declares the columns, ``docs/sweeps.md`` explains those that
their names do not.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json, to_json

from ascend_gym.core.best import speedup

_FASTEST = 1


def packed(value: dict[str, Any]) -> bytes:
    """Return ``value`` as compressed JSON."""
    return zlib.compress(to_json(value), _FASTEST)


def unpacked(data: bytes) -> dict[str, Any]:
    """Return the value that was given to ``packed``."""
    value: dict[str, Any] = from_json(zlib.decompress(data))
    return value


@dataclass(frozen=True)
class OperatorRecord:
    """Properties of the operator of a run."""

    op_id: str
    folder_digest: str
    op_type: str
    level: int
    category: str
    cases: int


@dataclass(frozen=True)
class RunRecord:
    """One run: its settings and outcome.

    Attributes:
        run_id: digest of the journal's header, and thus of operator, settings and protocol.
        variant: method with its special settings, such as ``ascend-optimizer:no-experience``.
        protocol_digest: digest of the measurement protocol.
        settings: settings in the header, as JSON; with ``measured_by``, ``None`` where the journal does not
            say it, and ``breaks``, where the run went on with another simulator or harness.
        steps: number of recorded evaluations, including the baseline.
        evaluations: number of charged evaluations.
        baseline_latency_us: latency of the operator's own sources; ``None`` if it was not measured.
        best_latency_us: latency of the best candidate; ``None`` if nothing correct was found for an operator
            without sources, or nothing was measured.
        best_digest: digest of the fastest correct candidate.
        stop_reason: why it ended; ``None`` if it can still be resumed.
        last_digest: digest of the journal's last record, which chains all before it.
        source: host and folder from which it was read.
    """

    run_id: str
    op_id: str
    folder_digest: str
    baseline_digest: str
    method: str
    variant: str
    model: str
    seed: int
    budget: int
    chip: str
    protocol_digest: str
    settings: str
    steps: int
    evaluations: int
    baseline_latency_us: float | None
    best_latency_us: float | None
    best_digest: str | None
    stop_reason: str | None
    message: str
    last_digest: str
    source: str

    @property
    def finished(self) -> bool:
        """Whether the run is complete, so that it cannot be resumed."""
        return self.stop_reason is not None

    @property
    def speedup(self) -> float:
        """Latency of the baseline divided by the best one; 1 for a run that found or measured nothing."""
        return speedup(self.baseline_latency_us, self.best_latency_us) or 1.0


@dataclass(frozen=True)
class EvaluationRecord:
    """One evaluation of a run.

    Attributes:
        idx: number of the proposal; 0 is the baseline.
        kind: kind of proposal: ``sample``, ``refine``, ``mutate-tiling`` and so on.
        stage: stage of the method that proposed it, if the method has stages.
        charged: whether it was charged to the budget.
        spent_evaluations: number of charged evaluations up to and including this one.
        improved: whether it became the best of its run.
        duplicate_of: earlier proposal of the same candidate.
        usable: whether the model's answer yielded a candidate.
        cached: whether the result came from the daemon's cache, or from an earlier proposal of the run.
        chain_digest: digest of the journal up to this result.
        origin: the method's notes about the proposal, as JSON.
        detail: result with cases, profiles and diagnostics, as compressed JSON (``packing.unpacked``);
            ``None`` for a duplicate, whose original has it.
    """

    run_id: str
    idx: int
    candidate_digest: str
    kind: str
    stage: str | None
    status: str
    latency_us: float | None
    charged: int
    spent_evaluations: int
    improved: int
    best_latency_us: float | None
    duplicate_of: int | None
    usable: int
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float
    cached: int
    device_seconds: float
    queue_s: float
    build_s: float
    run_s: float
    verify_s: float
    price_s: float
    total_s: float
    host: str | None
    backend: str | None
    toolchain_digest: str | None
    sandbox: str | None
    chain_digest: str
    origin: str
    detail: bytes | None


@dataclass(frozen=True)
class SourceRecord:
    """Files of a candidate that differ from those of the baseline; for the baseline itself, all files.

    ``files`` is compressed JSON of texts by path (``packing.unpacked``).
    """

    baseline_digest: str
    candidate_digest: str
    files: bytes


@dataclass(frozen=True)
class SessionRecord:
    """One process that worked on a run: host, versions, prompts, command."""

    run_id: str
    session_digest: str
    started_at: str
    host: str
    code_digest: str
    prompts_digest: str
    packages: str
    command: str


@dataclass(frozen=True)
class StoredRun:
    """A run with all its records."""

    run: RunRecord
    evaluations: tuple[EvaluationRecord, ...]
    sources: tuple[SourceRecord, ...] = ()
    sessions: tuple[SessionRecord, ...] = ()
    operator: OperatorRecord | None = field(default=None)
