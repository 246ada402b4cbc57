"""What a run of AscendCraft may be told."""

from __future__ import annotations

from enum import Enum


class Lowering(str, Enum):
    """Who translates programs into Ascend C: rules, or a model in four questions or in one."""

    RULES = "rules"
    FOUR_PASSES = "four-passes"
    ONE_PASS = "one-pass"
