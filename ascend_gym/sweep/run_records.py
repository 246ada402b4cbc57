"""What the results store holds: one record per run, evaluation, source text, session and operator.

Field names are column names; ``schema.py`` declares the columns, ``docs/sweeps.md`` says what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OperatorRecord:
    """What kind of operator a run was about."""

    op_id: str
    folder_digest: str
    op_type: str
    level: int
    category: str
    cases: int


@dataclass(frozen=True)
class RunRecord:
    """One run: what it was told, and what it has found.

    Attributes:
        run_id: digest of the journal's header, thus of operator, settings and protocol.
        variant: the method with what is special about it, such as ``ascend-optimizer:no-experience``.
        protocol_digest: digest of how candidates are measured.
        settings: the header's settings as JSON.
        steps: evaluations on record, the baseline among them.
        evaluations: evaluations charged.
        baseline_latency_us: latency of the operator's own sources; ``None`` if it was not measured.
        best_digest: digest of the fastest correct candidate.
        stop_reason: why it ended; ``None`` if it can still go on.
        last_digest: digest of the journal's last record, in which all before it are chained.
        source: host and folder that it was read from.
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
        """Whether there is nothing left to resume."""
        return self.stop_reason is not None

    @property
    def speedup(self) -> float:
        """Latency of the baseline over that of the best; 1 for a run that found or measured nothing."""
        if self.baseline_latency_us is None or self.best_latency_us is None:
            return 1.0
        return self.baseline_latency_us / self.best_latency_us


@dataclass(frozen=True)
class EvaluationRecord:
    """One evaluation of a run.

    Attributes:
        idx: number of the proposal; 0 is the baseline.
        kind: what made the proposal: ``sample``, ``refine``, ``mutate-tiling`` and so on.
        stage: stage of the method that made it, where it has stages.
        charged: whether it was charged to the budget.
        spent_evaluations: evaluations charged up to and with this one.
        improved: whether it became the best of its run.
        duplicate_of: the earlier proposal of the same candidate.
        usable: whether the answer of the model gave a candidate.
        cached: whether the daemon, or the run, knew the result already.
        chain_digest: digest of the journal up to this result.
        origin: what the method noted about the proposal, as JSON.
        detail: the result with cases, profiles and diagnostics; compressed JSON (``packing.unpacked``);
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
    """The files of a candidate that differ from those of the baseline; of the baseline itself, all.

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
    """All that there is about one run."""

    run: RunRecord
    evaluations: tuple[EvaluationRecord, ...]
    sources: tuple[SourceRecord, ...] = ()
    sessions: tuple[SessionRecord, ...] = ()
    operator: OperatorRecord | None = field(default=None)
