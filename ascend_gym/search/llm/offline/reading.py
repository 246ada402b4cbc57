"""What the offline model reads out of a prompt: the implementation, evidence about it, and experience."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ascend_gym.core.records import Candidate, SourceFile, Sources
from ascend_gym.rewrites.fenced import sections
from ascend_gym.rewrites.rule import Choice, Family, Rule, Site
from ascend_gym.search.llm.offline.ub_estimate import UbRoom

_HOST, _KERNEL = "op_host", "op_kernel"

FEWER_BLOCKS = frozenset({"core_share", "single_core_limit", "least_core_work", "core_work"})
"""Rules that take cores away."""

SMALLER_TILES = "ub_share"
"""The rule that cuts tiles from a part of UB."""

BANK_RULES = frozenset({"bank_padding", "buffer_order"})
"""Rules that move buffers to other banks of UB."""

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
_OVERLAPPING_PIPES = ("vec", "mte2", "mte3")
_WITHOUT_CONFLICTS = 0.1
_CONFLICT_EMPHASIS = 20.0
_FEWER_EVERYWHERE = frozenset({"core_share"})
_MORE_BLOCKS = frozenset({"block_dim", "block_dim_from_platform", "core_parts"})
_ORDERING = frozenset(
    {
        "full_barrier_removal",
        "full_barrier_narrowing",
        "vector_barrier_removal",
        "barrier_hoisting",
        "event_removal",
        "scalar_wait_later",
    }
)
_ORDERED_BY_HAND = 0.15  # where nothing but barriers and events keeps instructions in order
_GUESSED = {
    "tiling_key": 0.3,  # another key may stand for another data type
    "buffer_order": 0.4,  # which order keeps operands apart is not known
}
_LAUNCH_BOUND = 0.3  # share of its time that a launch of so many empty blocks takes
_OUT_OF_PLACE = 0.05
_L2_BYTES = 192 * 2**20  # of the chips that have most
_MOVED_BYTES = re.compile(r"\b(?:gm_to_ub|ub_to_gm|gm_to_l1|l0c_to_gm)_bytes\s*[=:]\s*(\d+)")
_NOTHING_TOLD = UbRoom()
_TAKEN_BYTES = re.compile(r"\bbuffers take (\d+)(?: of \d+)? bytes of UB")
_CONFLICTS = re.compile(r"\bbank conflicts in UB, by instruction: ((?:\w+=\d\.\d+(?:, )?)+|none that count)")
_BLOCKS = re.compile(r"\bblock dim (\d+) of (\d+) (?:vector|cube) cores")
_LAUNCH = re.compile(r"\ban empty launch of \d+ blocks? takes [\d.]+ us, (\d+)% of it")
_PIPE_RATIO = re.compile(r"\baiv_(\w+)_ratio\s*[=:]\s*(\d+(?:\.\d+)?)")
_UB_SHORTAGE = re.compile(r"^- .*unified buffer overflow", re.M)  # a fault; warnings begin otherwise
_ATTEMPTS = "\n### Attempt "  # what follows is told of other versions
_BY_HAND = re.compile(r"\bautomatic synchronisation off\b")
_QUEUE = re.compile(r"\bTQue(?:Bind)?\b")
_NARROW_TYPE = re.compile(r"\b(?:float16|bfloat16)\b")
_WIDE_TYPE = re.compile(r"\b(?:float32|int32|uint32)\b")
_SECTION = re.compile(
    r"^### Experience \d+: (?P<title>[^\n]*)\n(?P<body>.*?)(?=^### |^## |\Z)", re.MULTILINE | re.DOTALL
)
_MOTIF = re.compile(r"^- motif: (\w+) \(([\w.]+)\)", re.MULTILINE)
_SPEEDUP = re.compile(r"^- measured on .*?: (\d+(?:\.\d+)?)x faster", re.MULTILINE)
_AVOID = re.compile(r"^- avoid when: (.*)$", re.MULTILINE)
_WORD = re.compile(r"[a-z]+")
_SAME_FAMILY = 0.15
_ADVISED_AGAINST = 0.2
_AVOID_BY_HAND = re.compile(r"synchronisation is by hand|without automatic synchronisation")
_AVOID_NO_QUEUE = re.compile(r"without a queue")


def candidate_in(prompt: str) -> Candidate | None:
    """Read the operator out of a prompt's fenced files; ``None`` unless both sides are there.

    Files that several operators share, such as those of the ``foreach`` family, lie in folders of their own:
    those below a folder ``op_kernel`` belong to the kernel, others to the host.
    """
    files = [
        SourceFile(path=section.path, text=section.body)
        for section in sections(prompt)
        if section.path and section.closed and not section.has_edits
    ]
    kernel = tuple(file for file in files if _KERNEL in file.path.split("/")[:-1])
    host = tuple(file for file in files if file not in kernel)
    if len({file.path for file in files}) != len(files):
        return None
    mains = [_main(side, name) for side, name in ((host, _HOST), (kernel, _KERNEL))]
    if None in mains:
        return None
    host_main, kernel_main = (str(main) for main in mains)
    return Candidate(host=Sources(files=host, main=host_main), kernel=Sources(files=kernel, main=kernel_main))


def _main(files: tuple[SourceFile, ...], folder: str) -> str | None:
    """Return the first file of the operator's own folder."""
    return next((file.path for file in files if file.path.startswith(f"{folder}/")), None)


@dataclass(frozen=True)
class PromptEvidence:
    """What the prompt says about the present implementation.

    Attributes:
        pipe_ratios: share of time of each pipe, the largest over the cases.
        ub_is_short: whether the present implementation fails because UB is too small.
        ub_room: what is told of UB.
        bank_conflicts: share of vector core time that bank conflicts of UB cost, the largest over the cases;
            ``None`` where that is not told.
        fits_l2: whether all that a case reads or writes fits L2, so that going past it gains nothing.
        launch_shares: of each case, the share that launching its blocks empty would take.
        uses_all_cores: whether every case has as many blocks as there are cores.
        is_ordered_by_hand: whether queues or automatic synchronisation are missing, so that some instructions
            are ordered by hand.
    """

    pipe_ratios: Mapping[str, float]
    ub_is_short: bool
    ub_room: UbRoom = _NOTHING_TOLD
    bank_conflicts: float | None = None
    fits_l2: bool = False
    launch_shares: tuple[float, ...] = ()
    uses_all_cores: bool = False
    is_ordered_by_hand: bool = False

    def on(self, candidate: Candidate) -> PromptEvidence:
        """Return the same: what the prompt says is held to be true of rewrites as well."""
        return self

    def sites_of(self, rule: Rule, candidate: Candidate) -> list[Site]:
        """Return the places of a rule."""
        return rule.sites(candidate)

    def option_weight(self, rule: Rule, sites: list[Site]) -> float:
        """Return how likely a rule is to be tried: as what it is for, and the best that it offers."""
        return self.rule_weight(rule, sites) * max(self.site_weight(site) for site in sites)

    def rule_weight(self, rule: Rule, sites: list[Site]) -> float:
        """Return how promising a rule is by family, busy pipes, and how the blocks use the cores."""
        busy = max(self.pipe_ratios.get(pipe.value, 0.0) for pipe in rule.effect.pipes)
        weight = _FAMILY_WEIGHTS[rule.family] * (1.0 + _PROFILE_EMPHASIS * busy)
        if self.fits_l2 and rule.name == _L2_RULE and all(_forward(site) for site in sites):
            weight *= _BACKWARD_WEIGHT
        if self.is_ordered_by_hand and rule.name in _ORDERING:
            weight *= _ORDERED_BY_HAND
        weight *= _GUESSED.get(rule.name, 1.0)
        if rule.name in BANK_RULES and self.bank_conflicts is not None:
            weight *= (
                _WITHOUT_CONFLICTS
                if self.bank_conflicts == 0
                else 1.0 + _CONFLICT_EMPHASIS * self.bank_conflicts
            )
        if rule.name == SMALLER_TILES:
            weight *= 1.0 - max(self.pipe_ratios.get(pipe, 0.0) for pipe in _OVERLAPPING_PIPES)
        return weight * self._blocks_weight(rule.name)

    def _blocks_weight(self, rule: str) -> float:
        """Fewer blocks pay where launching takes a good part of the time, more where cores are idle."""
        if rule in FEWER_BLOCKS and self.launch_shares:
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
    by_hand = _is_synchronised_by_hand(prompt) or _has_no_queue(prompt)
    taken = [int(match[1]) for match in _TAKEN_BYTES.finditer(prompt)]
    room = UbRoom(sizes, max(taken, default=None))
    conflicts = [_shares_in(match[1]) for match in _CONFLICTS.finditer(prompt)]
    return PromptEvidence(
        ratios, is_short, room, max(conflicts, default=None), fits_l2, launches, all_cores, by_hand
    )


def _shares_in(text: str) -> float:
    """Return the sum of the shares in ``Add=0.012, Mul=0.004``."""
    return sum(float(share) for share in re.findall(r"=(\d\.\d+)", text))


@dataclass(frozen=True)
class ShownExperience:
    """What a prompt tells of one piece of experience.

    Attributes:
        motif: name of the motif.
        family: its family.
        title: one line.
        gain: natural logarithm of the measured speedup.
        is_advised_against: whether the prompt shows a condition under which it is to be avoided.
    """

    motif: str
    family: str
    title: str
    gain: float
    is_advised_against: bool = False

    def speaks_for(self, rule: Rule) -> float:
        """Return between 0 and 1 how much this experience is about what ``rule`` does."""
        if rule.name == self.motif or self.family.endswith(f".{rule.name}"):
            return 1.0
        own, other = set(rule.name.split("_")), {*_words(self.motif), *_words(self.title)}
        shared = len(own & other) / len(own)
        same_family = _SAME_FAMILY if rule.family.value in self.family else 0.0
        return max(same_family, shared / 2 if shared > 0.5 else 0.0)


def experience_in(prompt: str) -> list[ShownExperience]:
    """Read the experience out of a prompt, in order."""
    found = []
    conditions = [_AVOID_BY_HAND] * _is_synchronised_by_hand(prompt) + [_AVOID_NO_QUEUE] * _has_no_queue(
        prompt
    )
    for section in _SECTION.finditer(prompt):
        motif, speedup = _MOTIF.search(section["body"]), _SPEEDUP.search(section["body"])
        if motif is not None and speedup is not None:
            gain = math.log(max(1.0, float(speedup[1])))
            avoided = _AVOID.findall(section["body"])
            against = any(condition.search(text) for text in avoided for condition in conditions)
            found.append(ShownExperience(motif[1], motif[2], section["title"], gain, against))
    return found


def recommendation(rule: Rule, experience: Sequence[ShownExperience], emphasis: float) -> float:
    """Return the factor by which experience makes a rule more likely, or less: 1 if none speaks of it."""
    factor = 1.0
    for each in experience:
        if each.is_advised_against:
            factor *= _ADVISED_AGAINST if each.speaks_for(rule) == 1.0 else 1.0
        else:
            factor += emphasis * each.speaks_for(rule) * math.sqrt(each.gain)
    return factor


def _is_synchronised_by_hand(prompt: str) -> bool:
    """Say whether a prompt tells that the compiler does not synchronise."""
    return _BY_HAND.search(prompt) is not None


def _has_no_queue(prompt: str) -> bool:
    """Say whether no code of a prompt has a queue."""
    return _QUEUE.search(prompt) is None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
