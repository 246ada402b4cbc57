"""What an attempt changed of where the time goes, against the version that it came from.

Told for every attempt whose cases were measured, slower ones and those that fail later cases among them. What
did not change is not told, what counts most comes first, and the whole is at most ``MOST_CHARACTERS`` long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ascend_gym.core.records import CaseResult, EvalResult, Profile, Stall

MOST_CHARACTERS = 2000

_PIPES = {"aiv": ("vec", "mte2", "mte3", "scalar"), "aic": ("mac", "mte1", "mte2", "fixpipe", "scalar")}
_CORES = {"aiv": "", "aic": "cube "}
_SCALAR_PARTS = {
    "code_us": "its own code (addresses, loops)",
    "queue_us": "queue calls",
    "access_us": "accesses of UB and GM",
    "issue_us": "issuing",
    "order_us": "the compiler's flags",
    "wait_us": "waits",
}
_COUNTS = {
    "gm_to_ub_bytes": "bytes in",
    "ub_to_gm_bytes": "bytes out",
    "gm_to_l1_bytes": "bytes into L1",
    "l0c_to_gm_bytes": "bytes out of L0C",
    "aiv_vec_instructions": "vector instructions",
    "aiv_mte2_instructions": "copies in",
    "aiv_mte3_instructions": "copies out",
    "aic_mac_instructions": "Mmads",
}
_TELLING_SHARE = 0.01  # of a case's latency
_TELLING_COUNT = 0.02  # of a count: what it costs shows in times
_WEIGHT_OF_WHAT_IS_GONE = 0.1  # a pause at a line that was rewritten tells little of what is there now
_LINE_NUMBER = re.compile(r"(?<=:)\d+\b")


@dataclass(frozen=True)
class _Fact:
    """Something that changed; ``weight_us`` is the time that it stands for, by which facts are ordered."""

    weight_us: float
    text: str


def told_changes(before: EvalResult, result: EvalResult) -> tuple[str, ...]:
    """Return a line for each case that was measured before and after; nothing without split times."""
    pairs = [
        (old, new)
        for new in result.cases
        for old in before.cases
        if old.case_id == new.case_id and _is_split(old) and _is_split(new)
    ]
    facts = {
        new.case_id: sorted(_changes_of(old, new), key=lambda fact: -fact.weight_us) for old, new in pairs
    }
    everything = [(fact, case_id) for case_id, of_case in facts.items() for fact in of_case]
    everything.sort(key=lambda each: -each[0].weight_us)
    heads = {new.case_id: f"{new.case_id}, us of a core: " for _, new in pairs}
    room = MOST_CHARACTERS - sum(map(len, heads.values())) - len(heads)
    chosen: set[int] = set()
    for fact, _ in everything:
        if len(fact.text) + 2 <= room:
            room -= len(fact.text) + 2
            chosen.add(id(fact))
    lines = []
    for _, new in sorted(pairs, key=lambda pair: -_moved(*pair)):
        told = [fact.text for fact in facts[new.case_id] if id(fact) in chosen]
        lines.append(heads[new.case_id] + ("; ".join(told) or "as before"))
    return tuple(lines)


def _is_split(case: CaseResult) -> bool:
    return case.profile is not None and case.cores is not None and bool(case.cores.scalar)


def _moved(old: CaseResult, new: CaseResult) -> float:
    """Return how much a case gained or lost, as a share."""
    return abs((new.latency_us or 0.0) / (old.latency_us or 1.0) - 1)


def _changes_of(old: CaseResult, new: CaseResult) -> Iterator[_Fact]:
    """Yield what changed in a case by more than it takes to matter."""
    before, after = old.profile, new.profile
    if before is None or after is None:
        return
    least_us = _TELLING_SHARE * min(old.latency_us or 0.0, new.latency_us or 0.0)
    for kind, pipes in _PIPES.items():
        for pipe in pipes:
            was, now = (getattr(each, f"{kind}_{pipe}_time") for each in (before, after))
            if abs(now - was) >= least_us and (was or now):
                yield _Fact(abs(now - was), f"{_CORES[kind]}{pipe} busy {was:.2f} -> {now:.2f}")
    yield from _scalar_changes(old, new, least_us)
    yield from _core_changes(old, new, least_us)
    yield from _count_changes(before, after, least_us)
    yield from _pause_changes(old, new, least_us)


def _scalar_changes(old: CaseResult, new: CaseResult, least_us: float) -> Iterator[_Fact]:
    """Yield what the scalar units did otherwise: code that runs for the first time above all."""
    was_of, now_of = (case.cores.scalar if case.cores else {} for case in (old, new))
    for kind in (kind for kind in _PIPES if kind in was_of and kind in now_of):
        was, now = was_of[kind], now_of[kind]
        name = f"{_CORES[kind]}scalar"
        moved_us = abs(now.fetch_us - was.fetch_us)
        if moved_us >= least_us:
            counts = f"{was.fetched_instructions} -> {now.fetched_instructions} instructions"
            text = f"{name} first-run code {counts}, {was.fetch_us:.2f} -> {now.fetch_us:.2f}"
            yield _Fact(moved_us, text)
        for part, meaning in _SCALAR_PARTS.items():
            first, then = getattr(was, part), getattr(now, part)
            if abs(then - first) >= least_us:
                yield _Fact(abs(then - first), f"{name} {meaning} {first:.2f} -> {then:.2f}")


def _core_changes(old: CaseResult, new: CaseResult, least_us: float) -> Iterator[_Fact]:
    """Yield what changed of blocks, of the slowest core, of UB and of its banks."""
    before, after = old.profile, new.profile
    if before is None or after is None or old.cores is None or new.cores is None:
        return
    if before.block_dim != after.block_dim:
        moved_us = abs((new.latency_us or 0.0) - (old.latency_us or 0.0))
        yield _Fact(moved_us, f"block dim {before.block_dim} -> {after.block_dim}")
    was, now = old.cores.slowest_us, new.cores.slowest_us
    if abs(now - was) >= least_us:
        yield _Fact(abs(now - was), f"slowest core {was:.2f} -> {now:.2f}")
    if None not in (old.ub_taken_bytes, new.ub_taken_bytes) and old.ub_taken_bytes != new.ub_taken_bytes:
        yield _Fact(least_us, f"UB taken {old.ub_taken_bytes} -> {new.ub_taken_bytes} bytes")
    conflicts = old.cores.bank_conflict_ratios, new.cores.bank_conflict_ratios
    for name in sorted({*conflicts[0], *conflicts[1]}):
        lost = [
            ratios.get(name, 0.0) * each.aiv_time
            for ratios, each in zip(conflicts, (before, after), strict=True)
        ]
        if abs(lost[1] - lost[0]) >= least_us:
            yield _Fact(abs(lost[1] - lost[0]), f"bank conflicts of {name} {lost[0]:.2f} -> {lost[1]:.2f}")


def _count_changes(before: Profile, after: Profile, least_us: float) -> Iterator[_Fact]:
    for field, meaning in _COUNTS.items():
        was, now = getattr(before, field), getattr(after, field)
        if abs(now - was) > _TELLING_COUNT * max(was, now):
            yield _Fact(least_us, f"{meaning} of all cores {was} -> {now}")


def _pause_changes(old: CaseResult, new: CaseResult, least_us: float) -> Iterator[_Fact]:
    """Yield pauses that are new, longer or shorter; lines are told apart by their text, not by number."""
    was = {_without_numbers(each): each for each in reversed(old.stalls)}  # the longest of equal lines
    now = {_without_numbers(each): each for each in reversed(new.stalls)}
    for key in (*now, *(key for key in was if key not in now)):
        first_us = was[key].wait_ratio * _core_us(old) if key in was else 0.0
        then_us = now[key].wait_ratio * _core_us(new) if key in now else 0.0
        if abs(then_us - first_us) < least_us:
            continue
        stall = now.get(key) or was[key]
        change = (
            f"{first_us:.2f} -> {then_us:.2f}" if key in now else f"{first_us:.2f}, among the longest no more"
        )
        causes = f", after {pause_causes(stall)}" if key in now else ""
        weight_us = abs(then_us - first_us) * (1.0 if key in now else _WEIGHT_OF_WHAT_IS_GONE)
        yield _Fact(weight_us, f"{stall.pipe} pauses before {stall.at} {change}{causes}")


def pause_causes(stall: Stall) -> str:
    """Return what ended last before the pauses of a line, with their shares of time where they differ."""
    if not stall.by_cause:
        return stall.waits_for
    ordered = sorted(stall.by_cause.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{cause} {ratio:.1%}" for cause, ratio in ordered[:3]]
    rest = sum(ratio for _, ratio in ordered[3:])
    return ", ".join([*shown, *([f"others {rest:.1%}"] if rest else [])])


def _without_numbers(stall: Stall) -> tuple[str, str]:
    return stall.pipe, _LINE_NUMBER.sub("", stall.at)


def _core_us(case: CaseResult) -> float:
    """Return the time of a core, of which pauses are shares."""
    return max(case.profile.aiv_time, case.profile.aic_time) if case.profile else 0.0
