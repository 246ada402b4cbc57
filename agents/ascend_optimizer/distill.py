"""Semantic distillation: from a validated pair to an optimisation tuple (section 3.4.1, step 3).

What was measured (latencies, profile, diff) is taken from the evaluations; a model tells what it means.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from agents.ascend_optimizer.experience import Experience, ProfileChange, Provenance
from agents.ascend_optimizer.rewind import RewindStep, Unreadable
from ascend_gym.core.protocols import Message
from ascend_gym.core.records import CaseResult, OpSpec, Profile
from ascend_gym.core.text import well_formed
from ascend_gym.search.llm.prompts import describe_case, render_sources, system_message
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import Answer, ModelClient

_MAX_TEXT_CHARS = 2000
_MAX_ITEMS = 12
_LISTS = ("causal_chain", "keywords", "reusable_when", "avoid_when")
_REQUIRED = ("title", "bottleneck")

_TELLING_CHANGE = 0.01
_MAX_EVIDENCE = 8
_COPIES = {
    "gm_to_ub_bytes_per_instruction": ("gm_to_ub_bytes", "aiv_mte2_instructions"),
    "ub_to_gm_bytes_per_instruction": ("ub_to_gm_bytes", "aiv_mte3_instructions"),
}


class DistilledFields(BaseModel):
    """What a model told of a pair; the fields are those of ``Experience``. ``family`` may be empty."""

    model_config = ConfigDict(frozen=True)

    family: str
    title: str
    description: str
    bottleneck: str
    applicability: str
    expected_effect: str
    root_mechanism: str
    causal_chain: tuple[str, ...]
    keywords: tuple[str, ...]
    reusable_when: tuple[str, ...]
    avoid_when: tuple[str, ...]
    reuse_guidance: str


def fields_of_answer(answer: str) -> DistilledFields | Unreadable:
    """Read an answer; fields that are missing or of a wrong type are empty, but for title and bottleneck."""
    fields = next(_candidates(answer), None)
    if fields is None:
        return Unreadable(f"expected a JSON object with {' and '.join(_REQUIRED)}; there is none")
    texts = {name: _text(fields.get(name)) for name in DistilledFields.model_fields if name not in _LISTS}
    missing = [name for name in _REQUIRED if not texts[name]]
    if missing:
        return Unreadable(f"the JSON object has no text for {' and '.join(missing)}")
    lists = {name: _items(fields.get(name)) for name in _LISTS}
    return DistilledFields.model_validate({**texts, **lists, "family": _family(texts["family"])})


def _candidates(answer: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of an answer that have a required field, itself or inside of another."""
    for found in _objects(answer):
        for each in (found, *found.values()):
            if isinstance(each, dict) and any(name in each for name in _REQUIRED):
                yield each


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects in a text, outermost ones only."""
    decoder = json.JSONDecoder(strict=False)  # models write line breaks inside of strings
    start = text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield found
        start = text.find("{", end)


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "; ".join(_items(value))[:_MAX_TEXT_CHARS]
    if isinstance(value, (str, int, float)):
        return " ".join(well_formed(str(value)).split())[:_MAX_TEXT_CHARS]  # JSON can spell surrogates
    return ""


def _items(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, (list, tuple)) else [value]
    texts = [_text(each) for each in values if not isinstance(each, (list, tuple))]
    return tuple(text for text in texts if text)[:_MAX_ITEMS]


def _family(text: str) -> str:
    """Return ``text`` as a dotted path of names; empty if there is nothing in it."""
    parts = (
        "_".join(re.findall(r"[a-z0-9]+", part)).lstrip("0123456789_") for part in text.lower().split(".")
    )
    return ".".join(part for part in parts if part)


def distil(
    spec: OpSpec, step: RewindStep, model_client: ModelClient, *, chip: str, seed: int
) -> Experience | Unreadable:
    """Ask what a pair teaches, once more if the answer cannot be used; a second such answer is a value.

    Args:
        spec: operator that was rewound.
        step: the slow and the fast implementation, measured.
        model_client: is asked, and charged.
        chip: chip that measured.
        seed: seed of the run, for the provenance.

    Raises:
        ModelError: the model could not answer.
        BudgetExceededError: the budget does not cover the question.
    """
    messages, purpose = distill_messages(spec, step, chip), ("distill", step.trajectory, step.depth)
    answer = model_client.ask(messages, *purpose)
    told = fields_of_answer(answer.text)
    if isinstance(told, Unreadable):  # the pair cost an evaluation, an answer costs none
        answer = model_client.ask(messages, *purpose, "again")
        told = fields_of_answer(answer.text)
    if isinstance(told, Unreadable):
        return told
    return experience_of(spec, step, told, _provenance(step, answer, chip, seed))


def experience_of(
    spec: OpSpec, step: RewindStep, told: DistilledFields, provenance: Provenance
) -> Experience:
    """Put together what was measured and what was told.

    Args:
        spec: operator that was rewound.
        step: the slow and the fast implementation, measured.
        told: fields of the answer.
        provenance: where the experience comes from.
    """
    fields = told.model_dump()
    return Experience(
        operator=spec.op_id,
        motif=step.motif,
        **{**fields, "family": told.family or f"kernel.{step.motif}"},
        slow_us=step.slow.latency_us,
        fast_us=step.fast.latency_us,
        profile_evidence=telling_changes(profile_changes(*telling_case(step))),
        code_diff=step.diff,
        provenance=provenance,
    )


def distill_messages(spec: OpSpec, step: RewindStep, chip: str) -> list[Message]:
    """Return the prompt that shows a pair and its measurements."""
    slow, fast = telling_case(step)
    changes = profile_changes(slow, fast)
    user = render(
        "distill",
        package=__package__,
        op_type=spec.op_type,
        op_id=spec.op_id,
        category=spec.category,
        description=spec.description,
        motif=step.motif,
        site=step.site or "a place that the diff shows",
        cases="\n".join(_case_lines(spec, step)),
        case_id=slow.case_id,
        chip=chip,
        changes="\n".join(
            f"- {each.metric}: {each.before:.6g} -> {each.after:.6g}"
            for each in changes
            if each.before or each.after
        ),
        diff=step.diff.rstrip("\n"),
        sources=render_sources(step.fast.candidate),
    )
    return [
        system_message(spec, step.fast.candidate, step.fast.result, edits=False),
        Message("user", user),
    ]


def telling_case(step: RewindStep) -> tuple[CaseResult, CaseResult]:
    """Return slow and fast result of the case that the motif makes faster by the largest factor."""
    pairs = zip(step.slow.result.cases, step.fast.result.cases, strict=True)
    return max(pairs, key=lambda pair: (pair[0].latency_us or 0.0) / (pair[1].latency_us or math.inf))


def profile_changes(slow: CaseResult, fast: CaseResult) -> list[ProfileChange]:
    """Return every figure of the profile before and after, in the order of msprof; bytes per copy last."""
    if slow.profile is None or fast.profile is None:
        return []
    before, after = _figures(slow.profile), _figures(fast.profile)
    return [ProfileChange(metric=name, before=before[name], after=after[name]) for name in before]


def telling_changes(changes: list[ProfileChange]) -> tuple[ProfileChange, ...]:
    """Return the figures that changed by more than a hundredth, the largest factor first."""
    telling = [change for change in changes if _factor(change) > math.log1p(_TELLING_CHANGE)]
    return tuple(sorted(telling, key=_factor, reverse=True)[:_MAX_EVIDENCE])


def _factor(change: ProfileChange) -> float:
    """Return by how much a figure changed, up or down, as a logarithm; from or to zero counts most."""
    if change.before == change.after:
        return 0.0
    if change.before <= 0 or change.after <= 0:
        return math.inf
    return abs(math.log(change.after / change.before))


def _figures(profile: Profile) -> dict[str, float]:
    names = [
        name for name in Profile.model_fields if not name.endswith("_total_cycles")
    ]  # a time in other units
    figures = {name: float(getattr(profile, name)) for name in names}
    for name, (moved, instructions) in _COPIES.items():
        figures[name] = figures[moved] / max(1.0, figures[instructions])
    return figures


def _case_lines(spec: OpSpec, step: RewindStep) -> Iterator[str]:
    cases = {case.case_id: case for case in spec.cases}
    for slow, fast in zip(step.slow.result.cases, step.fast.result.cases, strict=True):
        yield f"{describe_case(cases[slow.case_id])}: {slow.latency_us:.3f} us -> {fast.latency_us:.3f} us"


def _provenance(step: RewindStep, answer: Answer, chip: str, seed: int) -> Provenance:
    return Provenance(
        chip=chip,
        model=str(answer.call["model"]),
        seed=seed,
        slow_digest=step.slow.candidate.digest,
        fast_digest=step.fast.candidate.digest,
        backend=step.fast.result.device.backend if step.fast.result.device else None,
    )
