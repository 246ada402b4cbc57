"""What a prompt says about the present implementation, and which rules that calls for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ascend_gym.rewrites.rule import Choice, Family, Rule, Site

_FAMILY_WEIGHTS = {
    Family.TILING: 4.0,
    Family.PIPELINING: 3.0,
    Family.DATA_MOVEMENT: 1.5,
    Family.COMPUTE: 1.5,
    Family.MEMORY: 0.5,
}
_BACKWARD_WEIGHT = 0.05
_PROFILE_EMPHASIS = 2.0
_L2_RULE = "l2_bypass"
_L2_BYTES = 192 * 2**20  # of the chips that have most
_MOVED_BYTES = re.compile(r"\b(?:gm_to_ub|ub_to_gm)_bytes\s*[=:]\s*(\d+)")
_PIPE_RATIO = re.compile(r"\baiv_(\w+)_ratio\s*[=:]\s*(\d+(?:\.\d+)?)")
_UB_SHORTAGE = re.compile(r"^- .*(?:\bUB\b|unified buffer).*(?:overflow|exceed|does not fit)", re.I | re.M)
_NARROW_TYPE = re.compile(r"\b(?:float16|bfloat16)\b")
_WIDE_TYPE = re.compile(r"\b(?:float32|int32|uint32)\b")


@dataclass(frozen=True)
class Impression:
    """What the prompt says about the present implementation.

    Attributes:
        pipe_ratios: share of time of each pipe, the largest over the cases.
        ub_is_short: whether a diagnostic complains about too little UB.
        element_bytes: sizes of the elements in the cases.
        fits_l2: whether all that a case reads or writes fits L2, so that going past it gains nothing.
    """

    pipe_ratios: Mapping[str, float]
    ub_is_short: bool
    element_bytes: tuple[int, ...] = ()
    fits_l2: bool = False

    def option_weight(self, rule: Rule, sites: list[Site]) -> float:
        """Return how likely a rule is to be tried: by family, busy pipes, and the best that it offers."""
        busy = max(self.pipe_ratios.get(pipe.value, 0.0) for pipe in rule.effect.pipes)
        best = max(self.site_weight(site) for site in sites)
        if self.fits_l2 and rule.name == _L2_RULE and all(_forward(site) for site in sites):
            best *= _BACKWARD_WEIGHT
        return _FAMILY_WEIGHTS[rule.family] * (1.0 + _PROFILE_EMPHASIS * busy) * best

    def site_weight(self, site: Site) -> float:
        """Return how promising a site is: as its best choice."""
        return max(self.choice_weight(choice, rank) for rank, choice in enumerate(site.choices))

    def choice_weight(self, choice: Choice, rank: int) -> float:
        """Return how likely a choice is: the first most, the way back hardly, unless UB is short."""
        goes_well = choice.forward != self.ub_is_short
        return (1.0 if goes_well else _BACKWARD_WEIGHT) / (1 + rank)


def _forward(site: Site) -> bool:
    return all(choice.forward for choice in site.choices)


def impression_of(prompt: str) -> Impression:
    """Read profile, diagnostics and data types out of a prompt."""
    ratios: dict[str, float] = defaultdict(float)
    for match in _PIPE_RATIO.finditer(prompt):
        ratios[match[1]] = max(ratios[match[1]], min(1.0, float(match[2])))
    sizes = (2,) * bool(_NARROW_TYPE.search(prompt)) + (4,) * bool(_WIDE_TYPE.search(prompt))
    moved = [int(match[1]) for match in _MOVED_BYTES.finditer(prompt)]
    fits_l2 = bool(moved) and max(moved) < _L2_BYTES
    return Impression(ratios, _UB_SHORTAGE.search(prompt) is not None, sizes, fits_l2)
