"""Rules about tiling keys, which select a variant of the kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.syntax import Call

_KEY = re.compile(r"(\d+)([uUlL]*)")
_MOST_KEYS = 4


@rule(
    Family.TILING,
    Side.TILING,
    Effect(
        (Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR, Pipe.SCALAR), "a variant of the kernel that suits the case better"
    ),
    inverse="tiling_key",
)
def tiling_key(view: View) -> Iterator[Site]:
    """``SetTilingKey`` has an integer literal, and the kernel tests for other keys with TILING_KEY_IS.

    Assumption: the variant of the other key computes the same for the given case.
    """
    asked = [call for file in view.kernel for call in file.source.calls if call.name == "TILING_KEY_IS"]
    matches = [_KEY.fullmatch(call.values[0]) for call in asked if len(call.values) == 1]
    keys = sorted({int(match[1]) for match in matches if match is not None})
    for file in view.host:
        for call in file.source.calls:
            if call.name == "SetTilingKey" and len(call.values) == 1:
                yield from _key_site(file, call, keys)


RULES: tuple[Rule, ...] = (tiling_key,)
REWINDS: tuple[Rule, ...] = ()


def _key_site(file: File, call: Call, keys: list[int]) -> Iterator[Site]:
    present, node = _KEY.fullmatch(call.values[0]), call.arguments[0]
    if present is None or int(present[1]) not in keys or not 1 < len(keys) <= _MOST_KEYS:
        return
    choices = []
    for key in keys:
        if key != int(present[1]):
            edit = file.replaced(node, f"{key}{present[2]}")
            choices.append(Choice(f"key {present[1]} -> {key}", (edit,)))
    yield Site(file.label(call.node.start_byte, file.source.text_of(call.node)), tuple(choices))
