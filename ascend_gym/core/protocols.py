"""Interfaces of the project, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ascend_gym.core.interrupts import raise_if_interrupted
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
    Phase,
    TargetSheet,
)
from ascend_gym.core.status import Status
from ascend_gym.core.text import well_formed

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


_POLL_S = 60.0


class Evaluation:
    """The future of a request's result.

    Waiting for one also processes the results of all others of the same evaluator. Use it only in the
    evaluator's thread.

    Args:
        evaluator: evaluator that it was submitted to.
        request: request.
        request_id: id that the evaluator assigned.
    """

    def __init__(self, evaluator: Evaluator, request: EvalRequest, request_id: str = "") -> None:
        self.request, self.request_id = request, request_id
        self._evaluator = evaluator
        self._result: EvalResult | None = None

    @property
    def done(self) -> bool:
        """Whether the result is available."""
        return self._result is not None

    def result(self) -> EvalResult:
        """Wait for the result and return it; the evaluator bounds the wait.

        Raises:
            InfrastructureError: the evaluator cannot be reached, or is closed.
            KeyboardInterrupt: SIGINT or SIGTERM has come.
        """
        while self._result is None:
            raise_if_interrupted()
            self._evaluator.poll(_POLL_S)
        return self._result

    def cancel(self) -> None:
        """Cancel it unless it is done; its result then has status ``cancelled``."""
        self._evaluator.cancel(self)

    def finish(self, result: EvalResult) -> None:
        """Set the result; called by the evaluator."""
        self._result = result


class Evaluator(Protocol):
    """Evaluates candidates, in this process or on daemons."""

    def submit(self, request: EvalRequest) -> Evaluation:
        """Queue a request. Submitting an equal request twice gives two evaluations."""

    def poll(self, timeout_s: float) -> list[tuple[Evaluation, EvalResult]]:
        """Return the evaluations finished since the last call, waiting up to ``timeout_s`` for the first."""

    def cancel(self, evaluation: Evaluation) -> None:
        """Cancel a request unless it has finished; its result then has status ``cancelled``."""

    def describe(self) -> DeviceInfo:
        """Return the device that measures."""

    def close(self) -> None:
        """Release all resources. Further calls raise ``InfrastructureError``."""


@dataclass(frozen=True)
class Built:
    """A candidate built for the dtypes of one case.

    Attributes:
        handle: backend-private description of the build.
        seconds: wall seconds spent building (0 if it came from the cache).
    """

    handle: Any
    seconds: float


@dataclass(frozen=True)
class Failure:
    """A candidate fault: a value, never an exception."""

    status: Status
    diagnostics: tuple[Diagnostic, ...]
    seconds: float = 0.0

    @classmethod
    def of(cls, status: Status, phase: Phase, message: str, seconds: float = 0.0) -> Failure:
        """Return the failure with one diagnostic, which names no place in a source."""
        return cls(status, (Diagnostic(phase=phase, message=message),), seconds)


@dataclass(frozen=True)
class RunOutput:
    """Outputs of a run.

    Attributes:
        outputs: arrays of each output parameter of the case (one array unless the parameter is a list); empty
            once they are judged, when the run is measured and cleaned up.
        handle: backend-private data (trace file, launch geometry) for ``measure``.
        seconds: wall seconds of execution, including the tiling program.
        diagnostics: warnings that do not affect whether the outputs are correct.
        explain: says what else is known of these outputs if they are wrong; called before ``cleanup``.
    """

    outputs: tuple[tuple[Array, ...], ...]
    handle: Any
    seconds: float
    diagnostics: tuple[Diagnostic, ...] = ()
    explain: Callable[[tuple[tuple[Array, ...], ...]], tuple[Diagnostic, ...]] = lambda _: ()


class Backend(Protocol):
    """Builds, runs and prices candidates: the simulator, a real NPU, or recorded results.

    Attributes:
        measures_on_device: whether ``measure`` runs the candidate and therefore needs a device like ``run``.
    """

    measures_on_device: bool

    def describe(self) -> DeviceInfo:
        """Return the device with which this backend measures."""

    def chips(self) -> tuple[str, ...]:
        """Return the chips that the backend can measure."""

    def target(self, chip: str) -> TargetSheet | None:
        """Return the known facts about one of these chips; ``None`` if there are none."""

    def supports(self, spec: OpSpec, protocol: MeasureProtocol) -> Diagnostic | None:
        """Return ``None`` if the backend can evaluate the operator, else the reason why not."""

    def build(
        self,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        protocol: MeasureProtocol,
        on_launch: Callable[[str], None] = lambda _: None,
    ) -> Built | Failure:
        """Build ``candidate`` for ``case``.

        Args:
            spec: operator.
            case: shapes, types and attributes.
            candidate: tiling and kernel sources.
            protocol: time limits.
            on_launch: called with the digest of all that the tiling program hands to the kernel, once that is
                known; not where it depends on values of inputs, or where only a device tells.

        Returns:
            The build, or the candidate's fault.
        """

    def run(
        self,
        built: Built,
        case: Case,
        inputs: Sequence[Sequence[Path]],
        protocol: MeasureProtocol,
        rerun: int = 0,
    ) -> RunOutput | Failure:
        """Execute a build in a fresh process on ``inputs``.

        Args:
            built: build to execute.
            case: case that it was built for.
            inputs: raw little-endian files, one per tensor, in parameter order.
            protocol: limits.
            rerun: 0 for the first run; where buffers lie and what they hold follows from ``layout_of`` it.
                Outputs and latency of a sound candidate do not depend on it.

        Returns:
            The outputs, or the candidate's fault.
        """

    def measure(self, run: RunOutput, case: Case, protocol: MeasureProtocol) -> CaseResult | Failure:
        """Price a run whose outputs were accepted as correct, and are given up by now."""

    def repeatability(self, protocol: MeasureProtocol) -> float:
        """Return the relative difference that two measurements of one build may have by chance."""

    def cleanup(self, run: RunOutput) -> None:
        """Remove the files of a run."""

    def trouble(self) -> str | None:
        """Return what prevents this host's own programs from working, or ``None`` if they do.

        Asked where a candidate seems to lack a library, a file, or a program that can be executed.
        """


def layout_of(rerun: int) -> int:
    """Return which of two sets of addresses and uninitialised contents a run has.

    A run with a price and one without have each of them, so that no kernel can tell by its memory whether it
    is paid: reruns 0 and 2 have a price, 1 and 3 have none.

    Args:
        rerun: see ``Backend.run``.
    """
    return int(rerun in (1, 2))


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
    """Generates the inputs of a case and judges outputs."""

    def inputs(self, case: Case, seed: int) -> list[list[Array]]:
        """Return the arrays of each input parameter, one for each shape that the case declares for it."""

    def expected(self, case: Case, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return the expected arrays of each output parameter, one for each declared shape.

        They are float64 if the outputs are rounded.
        """

    def judge(
        self,
        case: Case,
        outputs: Sequence[Sequence[Array]],
        expected: Sequence[Sequence[Array]],
    ) -> Verdict:
        """Compare outputs with expected outputs."""


class ResultStore(Protocol):
    """Stores results by the digest of everything that affects them."""

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
    """Why a model stopped generating."""

    COMPLETE = "complete"  # on its own, or unknown
    TOKEN_LIMIT = "token_limit"  # its tokens were used up, reasoning included
    REFUSED = "refused"  # it refused, or a filter took the answer


@dataclass(frozen=True)
class Completion:
    """An answer of a model; lone surrogates in ``text`` and ``model`` are replaced by U+FFFD.

    Attributes:
        text: answer.
        prompt_tokens: number of tokens read; 0 if the model did not report it.
        completion_tokens: number of tokens written, including reasoning; 0 if the model did not report it.
        model: the model's own name for itself.
        recorded: whether the answer comes from a recording and therefore costs nothing.
        ending: why the model stopped.
        cached_tokens: those of ``prompt_tokens`` that the provider had in its cache; 0 if it does not tell.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    model: str
    recorded: bool = False
    ending: Ending = Ending.COMPLETE
    cached_tokens: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", well_formed(self.text))
        object.__setattr__(self, "model", well_formed(self.model))


class Llm(Protocol):
    """A language model, or a substitute that answers prompts like one."""

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Answer ``messages``.

        Args:
            messages: conversation so far.
            seed: equal seeds and messages give equal answers, if the model supports it.
            max_tokens: maximum length of the answer.
            deadline_s: wall seconds after which to give up.

        Raises:
            ModelError: the model gave no answer.
        """


@dataclass(frozen=True)
class Proposal:
    """A candidate that a strategy wants to have evaluated, with a note of its origin."""

    candidate: Candidate
    origin: Mapping[str, Any]


class Strategy(Protocol):
    """A search method: proposes candidates and learns from their results.

    Proposals must be a function of the seed, the model's answers and the results observed so far, so that a
    run can be resumed by replaying it on the recorded results.
    """

    def propose(self, limit: int) -> list[Proposal]:
        """Return up to ``limit`` proposals; an empty list if none is possible before further results."""

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Process the result of an earlier proposal."""

    def close(self) -> None:
        """Release resources; nothing is proposed or observed afterwards."""


class Builder(Protocol):
    """Checks whether candidates build, without evaluating them."""

    def build(self, candidate: Candidate) -> tuple[Diagnostic, ...]:
        """Return the compilers' diagnostics; empty if both sides build.

        Raises:
            BudgetExceededError: the budget does not cover another build.
            InfrastructureError: nothing could be built.
        """


@runtime_checkable
class BuildingStrategy(Strategy, Protocol):
    """A search method that builds candidates before it proposes any."""

    def use_builder(self, builder: Builder) -> None:
        """Set the builder; called once, before the first proposal."""


class Embedder(Protocol):
    """Maps texts to vectors whose inner products measure similarity."""

    @property
    def name(self) -> str:
        """Identity of the embedding, for caches of vectors."""

    def embed(self, texts: Sequence[str]) -> Array:
        """Return a float32 array of shape ``(len(texts), d)`` whose rows have length 1.

        Raises:
            ModelError: the endpoint gave no embeddings.
        """
