"""Reading the answer of a distillation: one JSON object, in whatever wrapping a model puts it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from agents.ascend_optimizer.rewind_answer import Unreadable
from ascend_gym.core.text import well_formed

_MAX_TEXT_CHARS = 2000
_MAX_ITEMS = 12
_LISTS = ("causal_chain", "keywords", "reusable_when", "avoid_when")
_REQUIRED = ("title", "bottleneck")


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
