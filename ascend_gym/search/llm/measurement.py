"""Measurements in words: what a prompt tells of an evaluation, with what follows from its figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from ascend_gym.core.records import CaseResult, EvalResult, LaunchCost, Phase, Profile, TargetSheet
from ascend_gym.core.status import Status
from ascend_gym.search.llm.feedback import pause_causes

_PIPES = {"aiv": ("vec", "scalar", "mte2", "mte3"), "aic": ("mac", "scalar", "mte1", "mte2", "fixpipe")}
_COUNTS = {
    "aiv": ("gm_to_ub_bytes", "ub_to_gm_bytes", "aiv_mte2_instructions", "aiv_mte3_instructions"),
    "aic": ("gm_to_l1_bytes", "l0c_to_gm_bytes", "aic_mac_instructions"),
}
_COPIES = (
    ("MTE2", "gm_to_ub_bytes", "aiv_mte2_instructions"),
    ("MTE3", "ub_to_gm_bytes", "aiv_mte3_instructions"),
)
_CORES = {"aiv": "vector", "aic": "cube"}
_MEANING_OF_LAUNCH = " (blocks start one after another: a part of that passes while others work)"
_MEANING_OF_PAUSES = (
    ", in shares of its time, those before one line added up: before what, and after what, which it may have "
    "waited for (a pipe with little to do pauses without harm)"
)
_MEANING_OF_SCALAR = (
    " (first-run code: machine instructions of the kernel that no block of the core had run before)"
)
_MEANING_OF_WAITS = (
    ", the share of core time that the next instruction of each waits for a flag, a barrier or another pipe, "
    "while those before it may still run"
)
_MEANING_OF_BUSY = ", in which an instruction has the pipe, a copy also while it waits for bandwidth"
_MEANING_OF_CONFLICTS = " of core time"
_MEANING_OF_FLOOR = (
    "; a bound, not a goal: a launch, and the bytes and products that no candidate can do without"
)
_QUOTED_PLACE = re.compile(r"(at \S+:\d+) `[^`]*`")
_BUSY = 0.8
_OF_VALUES = "work depends on values"  # how the note begins that another input took longer
_TELLING_WAIT = 0.01
_TELLING_US = 0.02
_TELLING_CONFLICT = 0.005
_SMALL_COPY_BYTES = 16 * 1024
_MEANING_OF_SIZES = f", where large begins at {_SMALL_COPY_BYTES}"
_MAX_DIAGNOSTICS = 8
_TOLD_STALLS = 6  # shared between the kinds of cores


def describe_result(result: EvalResult, *, pauses: bool = True) -> str:
    """Return status, latencies, profile and diagnostics of an evaluation, a line for each fact.

    Args:
        result: the evaluation.
        pauses: whether to tell the longest pauses, which name lines of the sources.
    """
    reckoned = any(_is_reckoned(case) for case in result.cases)
    lines = ["nothing was run; to compare with:" if reckoned else f"status: {result.status.value}"]
    if result.latency_us is not None:
        floor = _against_floor(result.latency_us, result.floor_us, _MEANING_OF_FLOOR)
        lines.append(f"latency: {result.latency_us:.2f} us, the geometric mean over the cases{floor}")
    target = result.device.target if result.device else None
    told: set[str] = set()
    for case in result.cases:
        lines += _case_lines(case, target, told, pauses=pauses)
    lines += [f"- {said}" for said in told_diagnostics(result)[:_MAX_DIAGNOSTICS]]
    return "\n".join(lines)


def told_latencies(result: EvalResult) -> str:
    """Return the latency and that of each case in one line, for readers who are told the rest elsewhere."""
    cases = ", ".join(f"{case.case_id} {case.latency_us:.2f}" for case in result.cases if case.latency_us)
    return f"{result.latency_us:.2f} us, by case: {cases}" if result.latency_us is not None else cases


def told_diagnostics(result: EvalResult) -> list[str]:
    """Return what was said of a candidate, each once.

    Where it is correct, what the verdict says is about the operator's tolerance and not for its authors, nor
    is that its work depends on values, as that of every gather does.
    """
    correct = result.status is Status.OK
    said = [
        str(each)
        for each in result.all_diagnostics
        if not (correct and (each.phase is Phase.VERIFY or each.message.startswith(_OF_VALUES)))
    ]
    return list(dict.fromkeys(said))


def compared(result: EvalResult, before: EvalResult) -> str:
    """Return the latency of each case before and after, such as ``small 9.00 -> 7.50 us``."""
    earlier = {case.case_id: case.latency_us for case in before.cases}
    return "; ".join(
        f"{case.case_id} {earlier[case.case_id]:.2f} -> {case.latency_us:.2f} us"
        for case in result.cases
        if case.latency_us is not None and earlier.get(case.case_id) is not None
    )


def _case_lines(
    case: CaseResult, target: TargetSheet | None, told: set[str], *, pauses: bool
) -> Iterator[str]:
    """Yield the lines of a case; what lines need to be understood is told once, and noted in ``told``."""
    if case.profile is None or case.latency_us is None:
        return
    facts = [f"{case.latency_us:.2f} us{_against_floor(case.latency_us, case.floor_us)}"]
    if _is_reckoned(case):
        yield f"- {case.case_id}: {facts[0]}"
        return
    yield f"- {case.case_id}: {'; '.join([*facts, *_launch_facts(case, case.profile, target, told)])}"
    yield f"  {'; '.join(_pipe_facts(case, case.profile, told))}"
    yield f"  {'; '.join(_work_facts(case.profile, told))}"
    yield from _scalar_facts(case, told)
    if case.stalls and pauses:
        meaning = _once(_MEANING_OF_PAUSES, told)
        facts = [_quoted_once(fact, told) for fact in _stall_facts(case)]
        yield f"  longest pauses of the pipes of one core{meaning}: {'; '.join(facts)}"


def _is_reckoned(case: CaseResult) -> bool:
    """Say whether no core worked: the price of framework calls stands for an operator without sources."""
    profile = case.profile
    return profile is not None and profile.aiv_time == 0 and profile.aic_time == 0


def _against_floor(latency_us: float, floor_us: float | None, meaning: str = "") -> str:
    """Return the floor and the share of it that is reached."""
    if floor_us is None:
        return ""
    reached = f"{floor_us / latency_us:.0%} reached"
    return f" (no candidate can take less than {floor_us:.2f} us: {reached}{meaning})"


def _launch_facts(
    case: CaseResult, profile: Profile, target: TargetSheet | None, told: set[str]
) -> Iterator[str]:
    """Yield blocks, what their launch costs, how evenly the cores work, and how full their UB is."""
    kind = "aic" if profile.aic_time > 0 else "aiv"
    cores = None if target is None else target.aic_cores if kind == "aic" else target.aiv_cores
    yield f"block dim {profile.block_dim}" + (f" of {cores} {_CORES[kind]} cores" if cores else "")
    empty_us = _empty_launch_us(target, profile) if target else None
    if empty_us is not None:
        share = min(1.0, empty_us / profile.task_duration_us)
        blocks = f"{profile.block_dim} block{'s' if profile.block_dim > 1 else ''}"
        meaning = _once(_MEANING_OF_LAUNCH, told)
        yield f"an empty launch of {blocks} takes {empty_us:.2f} us, {share:.0%} of it{meaning}"
    work_us = max(profile.aiv_time, profile.aic_time)
    if case.cores is not None and case.cores.slowest_us > 0:
        slowest_us = case.cores.slowest_us
        yield (
            f"imbalance: cores work {work_us:.2f} us on average, the slowest {slowest_us:.2f} us "
            f"({max(0.0, 1 - work_us / slowest_us):.0%} lost)"
        )
    if case.ub_taken_bytes is not None:
        room = f" of {target.ub_bytes}" if target is not None else ""
        yield f"buffers take {case.ub_taken_bytes}{room} bytes of UB"


def _empty_launch_us(target: TargetSheet, profile: Profile) -> float | None:
    """Return what an empty launch on such cores takes, between the figures that are known, or ``None``."""
    blocks = profile.block_dim
    points = [(each.blocks, _cost_us(each, profile)) for each in target.launches]
    known = [(count, us) for count, us in points if us is not None]
    for (fewer, least_us), (more, most_us) in pairwise(known):
        if fewer <= blocks <= more:
            return least_us + (most_us - least_us) * (blocks - fewer) / (more - fewer)
    return None


def _cost_us(cost: LaunchCost, profile: Profile) -> float | None:
    if profile.aic_time == 0:
        return cost.vector_us
    return cost.mixed_us if profile.aiv_time > 0 else cost.cube_us


def _once(meaning: str, told: set[str]) -> str:
    """Return an explanation, or nothing if it was told before."""
    known = meaning in told
    told.add(meaning)
    return "" if known else meaning


def _pipe_facts(case: CaseResult, profile: Profile, told: set[str]) -> Iterator[str]:
    """Yield how busy the pipes are, of each kind of core that ran, and what they wait for."""
    kinds = [kind for kind in _PIPES if getattr(profile, f"{kind}_time") > 0]
    names = [f"{kind}_{pipe}_ratio" for kind in kinds for pipe in _PIPES[kind]]
    ratios = {name: float(getattr(profile, name)) for name in names}
    shares = ", ".join(f"{name}={ratio:.3f}" for name, ratio in ratios.items())
    yield f"busy share of core time{_once(_MEANING_OF_BUSY, told)}: {shares}"
    if len(kinds) > 1:
        yield from (f"dominant pipe of {_CORES[kind]} cores {_dominant(kind, ratios)[0]}" for kind in kinds)
    elif kinds:
        busiest, ratio = _dominant(kinds[0], ratios)
        yield f"dominant pipe {busiest}"
        if ratio < _BUSY:
            yield f"even the busiest pipe idles {1 - ratio:.0%} of the time"
    waits = case.cores.wait_ratios if case.cores else {}
    telling = sorted(name for name, ratio in waits.items() if ratio >= _TELLING_WAIT)  # as on file
    waiting = [f"{name}={waits[name]:.3f}" for name in telling]
    if waiting:
        yield f"waiting pipes{_once(_MEANING_OF_WAITS, told)}: {', '.join(waiting)}"
    if "aiv" in kinds and case.cores is not None:
        yield _conflicts(case.cores.bank_conflict_ratios, told)


def _conflicts(ratios: Mapping[str, float], told: set[str]) -> str:
    """Return what conflicts between banks of UB cost, by instruction, the most expensive first."""
    ordered = sorted(ratios.items(), key=lambda item: (-item[1], item[0]))
    telling = [f"{name}={ratio:.3f}" for name, ratio in ordered if ratio >= _TELLING_CONFLICT]
    if not telling:
        return "bank conflicts in UB, by instruction: none that count"
    meaning = _once(_MEANING_OF_CONFLICTS, told)
    return f"bank conflicts in UB, by instruction: {', '.join(telling)}{meaning}"


def _scalar_facts(case: CaseResult, told: set[str]) -> Iterator[str]:
    """Yield what the scalar unit's time went into, for each kind of core, the largest first."""
    known = case.cores.scalar if case.cores else {}
    for kind, times in ((kind, known[kind]) for kind in _PIPES if kind in known):
        fetched = f"first-run code ({times.fetched_instructions} instructions)"
        parts = {
            fetched: times.fetch_us,
            "its own code, addresses and loops": times.code_us,
            "queue calls": times.queue_us,
            "accesses of UB and GM": times.access_us,
            "issuing": times.issue_us,
            "the compiler's flags": times.order_us,
            "waits": times.wait_us,
        }
        longest_first = sorted(parts.items(), key=lambda part: -part[1])
        shown = ", ".join(f"{name} {us:.2f}" for name, us in longest_first if us >= _TELLING_US)
        meaning = _once(_MEANING_OF_SCALAR, told)
        yield f"  scalar unit of {_CORES[kind]} cores, us{meaning}: {shown or 'nothing that counts'}"


def _stall_facts(case: CaseResult) -> Iterator[str]:
    """Yield which pipe waits, before which line, and what it waits for; of each kind of core that ran."""
    kinds = {stall.pipe[:3] for stall in case.stalls}
    shown: Counter[str] = Counter()
    for stall in case.stalls:
        shown[stall.pipe[:3]] += 1
        if shown[stall.pipe[:3]] > _TOLD_STALLS // len(kinds):
            continue
        first = f" (of that the first of {stall.times} {stall.first_ratio:.1%})" if stall.times > 1 else ""
        yield f"{stall.pipe} {stall.wait_ratio:.1%}{first} before {stall.at}, after {pause_causes(stall)}"


def _quoted_once(fact: str, quoted: set[str]) -> str:
    """Return a fact without the lines of the source that were quoted before, each of which has its number."""

    def once(match: re.Match[str]) -> str:
        known = match[0] in quoted
        quoted.add(match[0])
        return match[1] if known else match[0]

    return _QUOTED_PLACE.sub(once, fact)


def _dominant(kind: str, ratios: dict[str, float]) -> tuple[str, float]:
    """Return the busiest pipe of a kind of core, in words, and its busy share."""
    name = max((each for each in ratios if each.startswith(kind)), key=lambda each: ratios[each])
    return f"{name.removeprefix('aiv_').removesuffix('_ratio')} ({ratios[name]:.0%})", ratios[name]


def _work_facts(profile: Profile, told: set[str]) -> Iterator[str]:
    """Yield bytes and instructions, all cores together."""
    kinds = [kind for kind in _COUNTS if getattr(profile, f"{kind}_time") > 0]
    yield "all cores: " + ", ".join(
        f"{name}={getattr(profile, name)}" for kind in kinds for name in _COUNTS[kind]
    )
    if profile.aiv_vec_instructions:
        yield f"aiv_vec_instructions={profile.aiv_vec_instructions}"
    for pipe, moved, instructions in _COPIES:
        if getattr(profile, instructions):
            each_bytes = getattr(profile, moved) / getattr(profile, instructions)
            size = "small" if each_bytes < _SMALL_COPY_BYTES else "large"
            yield f"{each_bytes:.0f} bytes per {pipe} instruction ({size}){_once(_MEANING_OF_SIZES, told)}"
