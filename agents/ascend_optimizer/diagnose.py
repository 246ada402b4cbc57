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
from ascend_gym.core.records import OpSpec
from ascend_gym.core.text import well_formed
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.prompts import operator_fields, render_sources, system_message
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import ModelClient

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
    spec: OpSpec, incumbent: Incumbent, attempts: str, model_client: ModelClient, *purpose: str | int
) -> Diagnosis:
    """Ask for the bottleneck of the incumbent.

    Raises:
        ModelError: the model could not answer.
        BudgetExceededError: the budget does not cover the question.
    """
    answer = model_client.ask(diagnosis_messages(spec, incumbent, attempts), "diagnose", *purpose)
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
        attempts=attempts,
        sources=render_sources(incumbent.candidate),
    )
    return [
        system_message(spec, incumbent.candidate, incumbent.result, edits=False),
        Message("user", user),
    ]


def read_diagnosis(answer: str) -> tuple[str, str]:
    """Return bottleneck and applicability; an answer without these headings is all bottleneck."""
    answer = well_formed(answer)
    parts = {match[1].lower(): " ".join(match[2].split()) for match in _PARTS.finditer(answer)}
    bottleneck = parts.get("bottleneck") or " ".join(answer.split()) or "unknown"
    return bottleneck[:_MAX_CHARACTERS], parts.get("applicability", "")[:_MAX_CHARACTERS]
