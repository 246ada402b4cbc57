"""The interfaces of the project, each declared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ascend_gym.core.records import (
    Candidate,
    Case,
    CaseResult,
    DeviceInfo,
    Diagnostic,
    EvalRequest,
    EvalResult,
    MeasureProtocol,
    OpSpec,
    TargetSheet,
)
from ascend_gym.core.status import Status
from ascend_gym.core.text import well_formed

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


_POLL_S = 60.0


class Evaluation:
    """A request that an evaluator works on: the future of its result.

    Waiting for one takes in the results of all others of the same evaluator, and belongs to its thread.

    Args:
        evaluator: what it was submitted to.
        request: what is to be evaluated.
        request_id: the name that the evaluator gives it.
    """

    def __init__(self, evaluator: Evaluator, request: EvalRequest, request_id: str = "") -> None:
        self.request, self.request_id = request, request_id
        self._evaluator = evaluator
        self._result: EvalResult | None = None

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return self._result is not None

    def result(self) -> EvalResult:
        """Return the result, waiting for it; the evaluator bounds the wait.

        Raises:
            InfrastructureError: the evaluator cannot be reached, or is closed.
        """
        while self._result is None:
            self._evaluator.poll(_POLL_S)
        return self._result

    def cancel(self) -> None:
        """Stop it if it is not done; its result then has status ``cancelled``."""
        self._evaluator.cancel(self)

    def finish(self, result: EvalResult) -> None:
        """Set the result; called by the evaluator."""
        self._result = result


class Evaluator(Protocol):
    """Evaluates candidates somewhere: in this process or on daemons."""

    def submit(self, request: EvalRequest) -> Evaluation:
        """Queue a request. Submitting an equal request twice gives two evaluations."""

    def poll(self, timeout_s: float) -> list[tuple[Evaluation, EvalResult]]:
        """Return what has finished since the last call, waiting up to ``timeout_s`` for the first."""

    def cancel(self, evaluation: Evaluation) -> None:
        """Stop a request if it has not finished; its result then has status ``cancelled``."""

    def describe(self) -> DeviceInfo:
        """Say what will measure."""

    def close(self) -> None:
        """Release everything. Further calls raise ``InfrastructureError``."""


@dataclass(frozen=True)
class Built:
    """A candidate built for one case's dtypes.

    Attributes:
        handle: backend-private description of the build.
        seconds: wall seconds spent building (0 when it came from the cache).
    """

    handle: Any
    seconds: float


@dataclass(frozen=True)
class Failure:
    """A candidate fault: a value, never an exception."""

    status: Status
    diagnostics: tuple[Diagnostic, ...]
    seconds: float = 0.0


@dataclass(frozen=True)
class RunOutput:
    """What a run left behind.

    Attributes:
        outputs: for each output parameter of the case, its arrays (one unless the parameter is a list).
        handle: backend-private remains (trace file, launch geometry) that ``measure`` needs.
        seconds: wall seconds of executing, the tiling program included.
        diagnostics: warnings, which say nothing of whether the outputs are right.
    """

    outputs: tuple[tuple[Array, ...], ...]
    handle: Any
    seconds: float
    diagnostics: tuple[Diagnostic, ...] = ()


class Backend(Protocol):
    """Builds, runs and prices candidates: the simulator, a real NPU, or recorded results.

    Attributes:
        measures_on_device: whether ``measure`` runs the candidate, and so needs a device as ``run`` does.
    """

    measures_on_device: bool

    def describe(self) -> DeviceInfo:
        """Say what this backend measures with."""

    def chips(self) -> tuple[str, ...]:
        """Return the chips that it can measure for."""

    def target(self, chip: str) -> TargetSheet | None:
        """Return what is known of one of these chips; ``None`` if that is nothing."""

    def supports(self, spec: OpSpec, protocol: MeasureProtocol) -> Diagnostic | None:
        """Return ``None`` if the backend can evaluate the operator, else the reason it cannot."""

    def build(
        self, spec: OpSpec, case: Case, candidate: Candidate, protocol: MeasureProtocol
    ) -> Built | Failure:
        """Build ``candidate`` for ``case``.

        Args:
            spec: the operator.
            case: shapes, types and attributes.
            candidate: tiling and kernel sources.
            protocol: time limits.
        """

    def run(
        self,
        built: Built,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int = 0,
    ) -> RunOutput | Failure:
        """Execute in a fresh process on ``inputs``.

        Args:
            built: what to execute.
            case: what it was built for.
            inputs: raw little-endian files, one per tensor, in parameter order.
            protocol: limits.
            rerun: 0 for the first run. Each rerun has its buffers at other addresses, over other garbage;
                outputs and latency of a sound candidate do not depend on it.
        """

    def measure(self, run: RunOutput, case: Case, protocol: MeasureProtocol) -> CaseResult | Failure:
        """Price a run whose outputs were judged correct."""

    def repeatability(self, protocol: MeasureProtocol) -> float:
        """Return by what share two measurements of one build may differ by chance: 0 if they never do."""

    def cleanup(self, run: RunOutput) -> None:
        """Remove what the run left behind."""


@dataclass(frozen=True)
class Verdict:
    """Whether outputs agree with the reference, and how closely."""

    correct: bool
    max_abs_error: float
    max_rel_error: float
    bad_share: float
    upstream_rule_passes: bool
    message: str


class Oracle(Protocol):
    """Knows the inputs of a case and judges outputs."""

    def inputs(self, case: Case, seed: int) -> list[list[Array]]:
        """Return, for each input parameter, its arrays: one of each shape that the case declares for it."""

    def expected(self, case: Case, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return, for each output parameter, its expected arrays, one of each declared shape.

        They are float64 where outputs are rounded.
        """

    def judge(
        self,
        case: Case,
        outputs: Sequence[Sequence[Array]],
        expected: Sequence[Sequence[Array]],
    ) -> Verdict:
        """Compare outputs with expectations."""


class ResultStore(Protocol):
    """Remembers results by the digest of everything that changes the answer."""

    def get(self, key: str) -> EvalResult | None:
        """Return the stored result, or ``None``."""

    def put(self, key: str, result: EvalResult) -> None:
        """Store a result."""


@dataclass(frozen=True)
class Message:
    """One chat message; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


class Ending(str, Enum):
    """Why a model stopped."""

    COMPLETE = "complete"  # by itself, or nobody says
    TOKEN_LIMIT = "token_limit"  # its tokens were used up, reasoning included
    REFUSED = "refused"  # it refused, or a filter took the answer


@dataclass(frozen=True)
class Completion:
    """What a model answered; lone surrogates in ``text`` and ``model`` are replaced by U+FFFD.

    Attributes:
        text: the answer.
        prompt_tokens: tokens read; 0 if the model did not tell.
        completion_tokens: tokens written, reasoning included; 0 if the model did not tell.
        model: what the model calls itself.
        recorded: whether the answer comes from a recording, and therefore costs nothing.
        ending: why it stopped.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    model: str
    recorded: bool = False
    ending: Ending = Ending.COMPLETE

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", well_formed(self.text))
        object.__setattr__(self, "model", well_formed(self.model))


class Llm(Protocol):
    """A language model, or something that reads and answers like one."""

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Answer ``messages``.

        Args:
            messages: the conversation so far.
            seed: same seed and messages give the same answer where the model allows it.
            max_tokens: upper limit of the answer's length.
            deadline_s: wall seconds after which to give up.

        Raises:
            ModelError: no answer could be had.
        """


@dataclass(frozen=True)
class Proposal:
    """A candidate that a strategy wants evaluated, with a note of where it came from."""

    candidate: Candidate
    origin: Mapping[str, Any]


class Strategy(Protocol):
    """A search method: asks for evaluations and learns from them.

    What it proposes follows from its seed, its model's answers and the results observed so far, so that a
    run can be resumed by running it again on the recorded results.
    """

    def propose(self, limit: int) -> list[Proposal]:
        """Return up to ``limit`` proposals; an empty list when none is possible before more results."""

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Learn the outcome of an earlier proposal."""

    def close(self) -> None:
        """Release what the strategy holds; nothing is proposed or observed after it."""


class Builder(Protocol):
    """Says whether candidates build, without evaluating them."""

    def build(self, candidate: Candidate) -> tuple[Diagnostic, ...]:
        """Return what the compilers object to; nothing if both sides build.

        Raises:
            BudgetExceededError: the budget does not cover another build.
            InfrastructureError: nothing could be built.
        """


@runtime_checkable
class BuildingStrategy(Strategy, Protocol):
    """A search method that has candidates built before it proposes any."""

    def use_builder(self, builder: Builder) -> None:
        """Take what builds; called once, before anything is proposed."""


class Embedder(Protocol):
    """Turns texts into vectors whose inner products say how alike they are."""

    @property
    def name(self) -> str:
        """Identity of the embedding, for whatever stores vectors."""

    def embed(self, texts: Sequence[str]) -> Array:
        """Return a float32 array of shape ``(len(texts), d)`` whose rows have length 1.

        Raises:
            ModelError: the embeddings could not be had.
        """
