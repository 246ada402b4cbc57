"""Bank construction (Algorithm 1 of version 2): rewind an operator, validate, distil what was learnt.

One operator has one folder: the calibrated noise, the journal of its rewinds, the experiences. A
construction that was broken off goes on from there; one that is done is not repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agents.ascend_optimizer.distill import distil
from agents.ascend_optimizer.experience import Experience
from agents.ascend_optimizer.noise import Noise, calibrate
from agents.ascend_optimizer.rewind import RewindSettings, RewindStep, RewindStrategy, Unreadable
from ascend_gym.core.append_log import AppendLog, write_whole
from ascend_gym.core.errors import BudgetExceededError, InfrastructureError, MisuseError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import Candidate, MeasureProtocol, OpSpec
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import Journal
from ascend_gym.search.ledger import BudgetLedger
from ascend_gym.search.model_client import MAX_TOKENS, ModelClient
from ascend_gym.search.outcome import RESUMABLE, SearchOutcome, Step, StopReason
from ascend_gym.search.search_rules import SearchRules

NOISE_NAME = "noise.json"
LESSONS_NAME = "lessons.jsonl"


class ConstructionSettings(BaseModel):
    """What decides the experience of an operator, beside its sources.

    Attributes:
        budget: evaluations for an operator; strengthening is part of it.
        strengthen: evaluations spent on making the first implementation faster.
        length: steps after which a trajectory ends.
        patience: failed attempts in a row after which a trajectory ends.
        max_slowdown: a trajectory ends when it is that many times slower than the strongest.
        model: model that rewinds and distils.
        temperature: sampling temperature; ``None`` leaves it to the endpoint.
        reasoning_effort: how much a model may reason, in its own words; ``None`` leaves it to the endpoint.
        max_tokens: limit of an answer's length, reasoning included.
        device_seconds: seconds of device time that may be spent; ``None`` for any.
        tokens: tokens that the model may read and write; ``None`` for any.
        usd: US dollars that the model may cost; ``None`` for any.
        price: price of the model at an endpoint as ``IN,OUT``, in US dollars per million tokens.
        seed: seed of the construction.
        chip: chip whose cycles are counted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    budget: int
    strengthen: int = 0
    length: int = 8
    patience: int = 4
    max_slowdown: float = 8.0
    model: str
    temperature: float | None = Field(default=None, ge=0)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    max_tokens: int = Field(default=MAX_TOKENS, ge=1)
    device_seconds: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    price: str | None = None
    seed: int
    chip: str


@dataclass(frozen=True)
class ConstructionResult:
    """What the rewinds of one operator gave.

    Attributes:
        steps: validated pairs.
        experiences: what was distilled from them.
        problems: answers to distillations that could not be used.
        evaluations: evaluations that were charged.
        noise: calibration of the threshold.
    """

    steps: int
    experiences: tuple[Experience, ...]
    problems: tuple[str, ...]
    evaluations: int
    noise: Noise


def construct(
    spec: OpSpec,
    model_client: ModelClient,
    evaluator: Evaluator,
    ledger: BudgetLedger,
    folder: Path,
    settings: ConstructionSettings,
    *,
    on_event: Callable[[Step], None] | None = None,
) -> ConstructionResult:
    """Rewind ``spec.baseline``, the strongest implementation known, and distil each validated pair.

    Args:
        spec: the operator.
        model_client: asks the offline model.
        evaluator: evaluates; stays open.
        ledger: a fresh one, of ``settings.budget`` evaluations.
        folder: folder of this operator; may hold a construction that was broken off.
        settings: what decides the outcome.
        on_event: called with each evaluation as it is observed.

    Raises:
        InfrastructureError: evaluator or model broke; call again to go on.
        KeyboardInterrupt: interrupted; call again to go on.
        MisuseError: the operator's baseline fails, or the folder is that of another construction.
    """
    folder.mkdir(parents=True, exist_ok=True)
    protocol = MeasureProtocol(chip=settings.chip)
    noise = _noise(folder / NOISE_NAME, lambda: calibrate(evaluator, spec, spec.baseline, protocol))
    strategy = RewindStrategy(spec, model_client, _rewind_settings(settings, noise))
    identity = {"method": "rewind", **settings.model_dump(), "tau_noise": noise.tau_noise}
    with Journal(folder) as journal:
        outcome = run_search(
            spec,
            strategy,
            evaluator,
            ledger,
            journal,
            SearchRules(protocol=protocol, settings=identity),
            on_event=on_event,
        )
    _check_finished(outcome)
    with AppendLog(folder / LESSONS_NAME) as lessons:
        _distil_all(spec, strategy.steps, model_client, lessons, settings)
        return _construction_result(lessons.records, outcome, noise)


def _rewind_settings(settings: ConstructionSettings, noise: Noise) -> RewindSettings:
    return RewindSettings(
        tau_noise=noise.tau_noise,
        strengthen=settings.strengthen,
        length=settings.length,
        patience=settings.patience,
        max_slowdown=settings.max_slowdown,
    )


def _noise(path: Path, measured: Callable[[], Noise]) -> Noise:
    """Return the noise on file; measure it first where there is none, so that a resumed run keeps its own."""
    if not path.exists():
        write_whole(path, f"{measured().model_dump_json()}\n".encode())
    try:
        return Noise.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise MisuseError(f"{path} holds no calibration; remove it to calibrate anew: {error}") from error


def _check_finished(outcome: SearchOutcome) -> None:
    if outcome.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    if outcome.stop_reason in RESUMABLE:
        raise InfrastructureError(outcome.message)
    if outcome.stop_reason is StopReason.BASELINE_FAILED:
        raise MisuseError(f"{outcome.spec.op_id} cannot be rewound: {outcome.message}")


def _distil_all(
    spec: OpSpec,
    steps: list[RewindStep],
    model_client: ModelClient,
    lessons: AppendLog,
    settings: ConstructionSettings,
) -> None:
    """Distil the pairs that have no lesson on file yet; an answer that cannot be used is on file too."""
    for step in steps[len(lessons.records) :]:
        try:
            told = distil(spec, step, model_client, chip=settings.chip, seed=settings.seed)
        except BudgetExceededError as error:
            told = Unreadable(str(error))
        if isinstance(told, Unreadable):
            lessons.append({"problem": str(told)})
        else:
            lessons.append({"experience": told.model_dump(mode="json")})


def _construction_result(
    lessons: list[dict[str, Any]], outcome: SearchOutcome, noise: Noise
) -> ConstructionResult:
    return ConstructionResult(
        steps=len(lessons),
        experiences=tuple(
            Experience.model_validate(lesson["experience"]) for lesson in lessons if "experience" in lesson
        ),
        problems=tuple(str(lesson["problem"]) for lesson in lessons if "problem" in lesson),
        evaluations=outcome.evaluations,
        noise=noise,
    )


@dataclass(frozen=True)
class _Found:
    latency_us: float
    digest: str
    folder: Path


def strongest_known(spec: OpSpec, runs: Sequence[Path]) -> Candidate:
    """Return the fastest candidate that the searches in ``runs`` and below found for the operator.

    Raises:
        MisuseError: a run's files are missing, or not those of the candidate that its summary tells of.
    """
    found = [each for root in runs for each in _found_below(spec, root)]
    if not found:
        return spec.baseline
    best = min(found, key=lambda each: (each.latency_us, each.digest))
    try:
        texts = {path: (best.folder / "best" / path).read_bytes().decode() for path in spec.baseline.texts}
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(
            f"the best candidate of the run in {best.folder} cannot be read: {error}"
        ) from error
    candidate = with_texts(spec.baseline, texts)
    if candidate.digest != best.digest:
        raise MisuseError(f"{best.folder / 'best'} does not hold the candidate that summary.json tells of")
    return candidate


def _found_below(spec: OpSpec, root: Path) -> Iterator[_Found]:
    for path in sorted(root.rglob("summary.json")):
        summary = _summary_in(path)
        latency_us, digest = summary.get("best_latency_us"), summary.get("best_digest")
        if summary.get("operator") == spec.op_id and isinstance(latency_us, float) and digest:
            yield _Found(latency_us, str(digest), path.parent)


def _summary_in(path: Path) -> dict[str, Any]:
    try:
        summary = json.loads(path.read_bytes())
    except ValueError as error:
        raise MisuseError(f"{path} is not the summary of a run: {error}") from error
    return summary if isinstance(summary, dict) else {}
