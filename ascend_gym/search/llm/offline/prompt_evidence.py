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
_FEWER_BLOCKS = frozenset({"core_share", "single_core_limit", "least_core_work", "core_work"})
_FEWER_EVERYWHERE = frozenset({"core_share"})
_MORE_BLOCKS = frozenset({"block_dim", "block_dim_from_platform"})
_LAUNCH_BOUND = 0.3  # share of its time that a launch of so many empty blocks takes
_OUT_OF_PLACE = 0.05
_L2_BYTES = 192 * 2**20  # of the chips that have most
_MOVED_BYTES = re.compile(r"\b(?:gm_to_ub|ub_to_gm)_bytes\s*[=:]\s*(\d+)")
_BLOCKS = re.compile(r"\bblock dim (\d+) of (\d+) (?:vector|cube) cores")
_LAUNCH = re.compile(r"\ban empty launch of \d+ blocks? takes [\d.]+ us, (\d+)% of it")
_PIPE_RATIO = re.compile(r"\baiv_(\w+)_ratio\s*[=:]\s*(\d+(?:\.\d+)?)")
_UB_SHORTAGE = re.compile(r"^- .*unified buffer overflow", re.M)  # a fault; warnings begin otherwise
_ATTEMPTS = "\n### Attempt "  # what follows is told of other versions
_NARROW_TYPE = re.compile(r"\b(?:float16|bfloat16)\b")
_WIDE_TYPE = re.compile(r"\b(?:float32|int32|uint32)\b")


@dataclass(frozen=True)
class PromptEvidence:
    """What the prompt says about the present implementation.

    Attributes:
        pipe_ratios: share of time of each pipe, the largest over the cases.
        ub_is_short: whether the present implementation fails because UB is too small.
        element_bytes: sizes of the elements in the cases.
        fits_l2: whether all that a case reads or writes fits L2, so that going past it gains nothing.
        launch_shares: of each case, the share that launching its blocks empty would take.
        uses_all_cores: whether every case has as many blocks as there are cores.
    """

    pipe_ratios: Mapping[str, float]
    ub_is_short: bool
    element_bytes: tuple[int, ...] = ()
    fits_l2: bool = False
    launch_shares: tuple[float, ...] = ()
    uses_all_cores: bool = False

    def option_weight(self, rule: Rule, sites: list[Site]) -> float:
        """Return how likely a rule is to be tried: as what it is for, and the best that it offers."""
        return self.rule_weight(rule, sites) * max(self.site_weight(site) for site in sites)

    def rule_weight(self, rule: Rule, sites: list[Site]) -> float:
        """Return how promising a rule is by family, busy pipes, and how the blocks use the cores."""
        busy = max(self.pipe_ratios.get(pipe.value, 0.0) for pipe in rule.effect.pipes)
        weight = _FAMILY_WEIGHTS[rule.family] * (1.0 + _PROFILE_EMPHASIS * busy)
        if self.fits_l2 and rule.name == _L2_RULE and all(_forward(site) for site in sites):
            weight *= _BACKWARD_WEIGHT
        return weight * self._blocks_weight(rule.name)

    def _blocks_weight(self, rule: str) -> float:
        """Fewer blocks pay where launching takes a good part of the time, more where cores are idle."""
        if rule in _FEWER_BLOCKS and self.launch_shares:
            least, most = min(self.launch_shares), max(self.launch_shares)
            telling = least if rule in _FEWER_EVERYWHERE else most
            return 1.0 if telling >= _LAUNCH_BOUND else _OUT_OF_PLACE
        return _OUT_OF_PLACE if rule in _MORE_BLOCKS and self.uses_all_cores else 1.0

    def site_weight(self, site: Site) -> float:
        """Return how promising a site is: as its best choice."""
        return max(self.choice_weight(choice, rank) for rank, choice in enumerate(site.choices))

    def choice_weight(self, choice: Choice, rank: int) -> float:
        """Return how likely a choice is: the first most, the way back hardly, unless UB is short."""
        goes_well = choice.forward != self.ub_is_short
        return (1.0 if goes_well else _BACKWARD_WEIGHT) / (1 + rank)


def _forward(site: Site) -> bool:
    return all(choice.forward for choice in site.choices)


def evidence_of(prompt: str) -> PromptEvidence:
    """Read profile, diagnostics and data types out of a prompt."""
    ratios: dict[str, float] = defaultdict(float)
    for match in _PIPE_RATIO.finditer(prompt):
        ratios[match[1]] = max(ratios[match[1]], min(1.0, float(match[2])))
    sizes = (2,) * bool(_NARROW_TYPE.search(prompt)) + (4,) * bool(_WIDE_TYPE.search(prompt))
    moved = [int(match[1]) for match in _MOVED_BYTES.finditer(prompt)]
    fits_l2 = bool(moved) and max(moved) < _L2_BYTES
    launches = tuple(int(match[1]) / 100 for match in _LAUNCH.finditer(prompt))
    blocks = [(int(match[1]), int(match[2])) for match in _BLOCKS.finditer(prompt)]
    all_cores = bool(blocks) and all(used >= cores for used, cores in blocks)
    is_short = _UB_SHORTAGE.search(prompt.partition(_ATTEMPTS)[0]) is not None
    return PromptEvidence(ratios, is_short, sizes, fits_l2, launches, all_cores)
