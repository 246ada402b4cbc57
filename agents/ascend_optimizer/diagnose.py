"""Bottleneck diagnosis (version 1, section 3.4.2): from (T, K), profile and diagnostics to the query q.

What the profile says by itself is computed; what it means for this kernel is asked of the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.ascend_optimizer.incumbent import Incumbent
from agents.ascend_optimizer.template import PACKAGE
from ascend_gym.core.protocols import Message
from ascend_gym.core.records import Case, OpSpec, Profile
from ascend_gym.core.text import well_formed
from ascend_gym.search.asker import Asker
from ascend_gym.search.llm.prompts import describe_result, operator_fields, render, render_sources

VECTOR_CORES: Mapping[str, int] = {"910B2": 48}
"""Vector cores by chip, where they are known (source: the chip descriptions of the simulator)."""

PIPES = ("vec", "scalar", "mte2", "mte3")

_BUSY = 0.8
_SMALL_COPY_BYTES = 16 * 1024
_MAX_CHARACTERS = 1500
_PARTS = re.compile(
    r"^\W{0,20}(Bottleneck|Applicability)\W{0,20}?:\W{0,20}(.*?)"
    r"(?=^\W{0,20}(?:Bottleneck|Applicability)\W{0,20}?:|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Diagnosis:
    """What holds an operator back.

    Attributes:
        bottleneck: the symptom, in words.
        applicability: the code and shapes at hand, in words.
        call: note of the model's call, for the journal.
    """

    bottleneck: str
    applicability: str
    call: Mapping[str, Any]


def diagnose(
    spec: OpSpec, incumbent: Incumbent, attempts: str, asker: Asker, *purpose: str | int
) -> Diagnosis:
    """Ask for the bottleneck of the incumbent.

    Raises:
        ModelError: the model could not answer.
        BudgetExceededError: the budget does not cover the question.
    """
    answer = asker.ask(diagnosis_messages(spec, incumbent, attempts), "diagnose", *purpose)
    bottleneck, applicability = read_diagnosis(answer.text)
    return Diagnosis(bottleneck, applicability, answer.call)


def diagnosis_messages(spec: OpSpec, incumbent: Incumbent, attempts: str) -> list[Message]:
    """Return the prompt of a diagnosis."""
    user = render(
        "diagnose",
        package=PACKAGE,
        **operator_fields(spec),
        category=spec.category,
        measurement=describe_result(incumbent.result),
        evidence="\n".join(evidence(spec, incumbent)),
        attempts=attempts,
        sources=render_sources(incumbent.candidate),
    )
    return [Message("system", render("system")), Message("user", user)]


def read_diagnosis(answer: str) -> tuple[str, str]:
    """Return bottleneck and applicability; an answer without these headings is all bottleneck."""
    answer = well_formed(answer)
    parts = {match[1].lower(): " ".join(match[2].split()) for match in _PARTS.finditer(answer)}
    bottleneck = parts.get("bottleneck") or " ".join(answer.split()) or "unknown"
    return bottleneck[:_MAX_CHARACTERS], parts.get("applicability", "")[:_MAX_CHARACTERS]


def evidence(spec: OpSpec, incumbent: Incumbent) -> list[str]:
    """Return what follows from the profile by arithmetic, a line for each case."""
    device = incumbent.result.device
    cores = VECTOR_CORES.get(device.chip) if device is not None else None
    cases = {case.case_id: case for case in spec.cases}
    return [
        f"- {measured.case_id}: {'; '.join(_facts(cases[measured.case_id], measured.profile, cores))}"
        for measured in incumbent.result.cases
        if measured.profile is not None and measured.case_id in cases
    ]


def _facts(case: Case, profile: Profile, cores: int | None) -> list[str]:
    ratios = {pipe: getattr(profile, f"aiv_{pipe}_ratio") for pipe in PIPES}
    dominant = max(ratios, key=lambda pipe: ratios[pipe])
    facts = [f"dominant pipe {dominant} ({ratios[dominant]:.0%} of core time)"]
    if ratios[dominant] < _BUSY:
        facts.append(f"waiting: even the busiest pipe idles {1 - ratios[dominant]:.0%} of the time")
    facts += _per_instruction(case, profile)
    facts.append(f"block dim {profile.block_dim}" + (f" of {cores} vector cores" if cores else ""))
    outside = 1 - min(1.0, profile.aiv_time / profile.task_duration_us)
    facts.append(f"launch and imbalance over the cores take {outside:.0%} of the task")
    return facts


def _per_instruction(case: Case, profile: Profile) -> list[str]:
    facts = []
    copies = (
        ("MTE2", profile.gm_to_ub_bytes, profile.aiv_mte2_instructions),
        ("MTE3", profile.ub_to_gm_bytes, profile.aiv_mte3_instructions),
    )
    for pipe, moved_bytes, instructions in copies:
        if instructions:
            each_bytes = moved_bytes / instructions
            size = "small" if each_bytes < _SMALL_COPY_BYTES else "large"
            facts.append(f"{each_bytes:.0f} bytes per {pipe} instruction ({size})")
    if profile.aiv_vec_instructions and case.inputs:
        elements = profile.gm_to_ub_bytes / case.inputs[0].dtype.itemsize_bytes
        facts.append(f"{elements / profile.aiv_vec_instructions:.0f} elements loaded per vector instruction")
    return facts
