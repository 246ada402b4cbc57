"""Which operators are so alike that experience with one gives the other away."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_VARIANT_WORDS = frozenset({"v", "foreach", "inplace", "grad", "custom", "d", "fast"})


def are_kin(one: str, other: str) -> bool:
    """Say whether two operators, by id or name, are the same or near twins.

    Twins are operators of which one names all that the other does, suites, versions and variants apart:
    ``core/add`` and ``cann-ops/foreach_add_list``, ``core/rms_norm`` and ``cann-ops/add_rms_norm_quant_v2``.
    """
    words, others = _words(one), _words(other)
    return words <= others or others <= words


def _words(operator: str) -> frozenset[str]:
    name = operator.rsplit("/", 1)[-1]
    found = [word.lower() for word in _WORD.findall(name)]
    essential = [word for word in found if word not in _VARIANT_WORDS and not word.isdigit()]
    return frozenset(essential or found)
