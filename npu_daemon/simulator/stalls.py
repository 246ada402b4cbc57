"""What the pipes of a core wait for, by line of the source: from a launch's timeline and a second run.

The timeline says when each pipe worked on what, but not where that stands in the source. The kernel is run
once more, to tell where it issues the records of one block. Pipes work in order, so that the events of a pipe
and its records go together one by one. A pipe that begins something after a pause waited: for the scalar
unit, which issues it, or for what another pipe ended just before.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ascend_gym.core.records import Stall
from npu_daemon.simulator.call_names import call_name
from npu_daemon.simulator.places import Place, PlaceOf, places_by_frames
from npu_daemon.simulator.task_type import CoreKind

MAX_EVENTS = 100_000
MAX_RECORDS = 1024
"""Of one block, the first ones: what a loop does it has done a few times by then."""

_SHOWN = 6
_QUOTED = 50  # characters of a line
_TELLING_SHARE = 0.02
_SCALAR = "S"
_LOCATION = re.compile(r"([0-9]{1,9}) ([0-9]{1,9})")
_ROUNDING_CYCLES = 1.0
_PIPES = {"V": "vec", "M": "mac", "MTE1": "mte1", "MTE2": "mte2", "MTE3": "mte3", "FIX": "fixpipe"}


@dataclass(frozen=True)
class _Event:
    """What a pipe did from ``start`` to ``end``, in cycles; once they are known, where and the line there."""

    pipe: str
    name: str
    start: float
    end: float
    place: Place = (None, None)
    quoted: str = ""

    @property
    def told(self) -> str:
        """Name it as prompts and reports do."""
        if self.pipe == _SCALAR:
            return "the scalar unit, which issues it"
        file, line = self.place
        return f"{call_name(self.name)} at {file}:{line}{self.quoted}" if file else call_name(self.name)


def stalls_of(
    price: Mapping[str, Any],
    timeline: Path,
    run_again: Callable[[str], str],
    libraries: Mapping[CoreKind, Path],
    place_of: PlaceOf,
    texts: Mapping[str, str],
    flag_cycles: float,
) -> tuple[Stall, ...]:
    """Return the longest waits of the first vector core and of the first cube core of a launch.

    Args:
        price: JSON of the pricing program.
        timeline: what it wrote of the launch.
        run_again: runs the kernel once more with further lines of its job, and returns what it printed.
        libraries: what ran, by kind of core.
        place_of: picks the place to show from rows ``FILE:LINE``, the innermost first.
        texts: sources of the kernel by path, of which lines are quoted.
        flag_cycles: what a flag takes from one pipe to another.
    """
    kinds = [str(core["kind"]) for core in price["cores"]]
    cores = {kinds.index(kind): kind for kind in dict.fromkeys(kinds)}
    wanted = "".join(f"locate {core} {ordinal}\n" for core in cores for ordinal in range(MAX_RECORDS))
    records = _located(run_again(wanted), libraries, place_of)
    found = []
    for core, kind in cores.items():
        events = _placed(list(_events(timeline, core)), records[core], texts)
        found += _stalls(kind, events, flag_cycles)
    return tuple(found)


def _events(timeline: Path, core: int) -> Iterator[_Event]:
    with timeline.open(encoding="ascii") as lines:
        for line in lines:
            its_core, pipe, name, start, end, _ = line.split()
            if int(its_core) == core:
                yield _Event(pipe, name, float(start), float(end))


def _located(
    printed: str, libraries: Mapping[CoreKind, Path], place_of: PlaceOf
) -> dict[int, list[tuple[str, Place]]]:
    """Return name and place of the records of each block, in the order in which they were issued."""
    told: dict[int, dict[int, tuple[str, CoreKind, str]]] = defaultdict(dict)
    for row in printed.splitlines():
        fields = row.split("\t")
        numbers = _LOCATION.fullmatch(fields[-1])
        if len(fields) == 5 and fields[0] == "located" and numbers is not None:
            kind = CoreKind.CUBE if fields[2].startswith("cube") else CoreKind.VECTOR
            told[int(numbers[1])][int(numbers[2])] = (fields[1], kind, fields[3])
    wanted = [(kind, frames) for block in told.values() for _, kind, frames in block.values()]
    places = places_by_frames(wanted, libraries, place_of)
    located: dict[int, list[tuple[str, Place]]] = defaultdict(list)
    for number, records in told.items():
        for _, (name, kind, frames) in sorted(records.items()):
            located[number].append((name, places.get((kind, frames), (None, None))))
    return located


def _placed(
    events: Sequence[_Event], records: Iterable[tuple[str, Place]], texts: Mapping[str, str]
) -> list[_Event]:
    """Return the events up to the last whose record is known, with their places."""
    lines = {path: text.split("\n") for path, text in texts.items()}
    by_name: dict[str, list[Place]] = defaultdict(list)
    for name, place in records:
        by_name[name].append(place)
    taken: Counter[str] = Counter()
    placed = []
    for event in sorted(events, key=lambda each: each.start):
        places = by_name[event.name]
        if event.pipe == _SCALAR:
            placed.append(event)
        elif taken[event.name] < len(places):
            place = places[taken[event.name]]
            quoted = _quoted(lines, place)
            placed.append(replace(event, place=place, quoted=quoted))
        else:
            break
        taken[event.name] += 1
    return placed


def _quoted(lines: Mapping[str, Sequence[str]], place: Place) -> str:
    """Return the beginning of a line in quotes, so that nobody has to count to it."""
    file, line = place
    known = lines.get(file or "", ())
    text = known[line - 1].strip() if line is not None and 0 < line <= len(known) else ""
    text = text.replace("`", "'").removeprefix("AscendC::")
    return f" `{text if len(text) <= _QUOTED else text[:_QUOTED] + '...'}`" if text else ""


def _stalls(kind: str, events: Sequence[_Event], flag_cycles: float) -> list[Stall]:
    """Return the longest waits of a core, summed up by pipe and line."""
    total = max((event.end for event in events), default=0.0)
    begun = min((event.start for event in events), default=0.0)
    waits: dict[tuple[str, str], list[float]] = defaultdict(list)  # one after the other
    causes: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    last_end: dict[str, float] = {}
    for event in events:
        if event.pipe in _PIPES:
            since = last_end.get(event.pipe, begun)
            key = (event.pipe, event.told)
            if event.start - since > flag_cycles:
                waits[key].append(event.start - since)
                causes[key][_cause(event, since, events, flag_cycles)] += event.start - since
            last_end[event.pipe] = event.end
    longest_first = sorted(waits.items(), key=lambda item: -sum(item[1]))
    telling = [(key, each) for key, each in longest_first if sum(each) >= _TELLING_SHARE * total]
    return [
        Stall(
            pipe=f"{kind}_{_PIPES[pipe]}",
            at=told,
            waits_for=max(causes[pipe, told].items(), key=lambda item: item[1])[0],
            wait_ratio=round(sum(cycles) / total, 4),
            times=len(cycles),
            first_ratio=round(cycles[0] / total, 4),
            by_cause=_shares(causes[pipe, told], total),
        )
        for (pipe, told), cycles in telling[:_SHOWN]
    ]


def _shares(causes: Mapping[str, float], total: float) -> dict[str, float]:
    """Return the share of time by cause, the largest first; nothing where there is a single one."""
    if len(causes) < 2:
        return {}
    ordered = sorted(causes.items(), key=lambda item: -item[1])
    return {cause: round(cycles / total, 4) for cause, cycles in ordered}


def _cause(event: _Event, since: float, events: Sequence[_Event], flag_cycles: float) -> str:
    """Return what ended last in a pause before ``event``: another pipe's work, or issuing it."""
    before = [each for each in events if since < each.end <= event.start + _ROUNDING_CYCLES]
    others = [each for each in before if each.pipe not in (event.pipe, _SCALAR)]
    latest = max(others, key=lambda each: each.end, default=None)
    if latest is not None and latest.end >= event.start - flag_cycles - _ROUNDING_CYCLES:
        return latest.told
    scalar = [each for each in before if each.pipe == _SCALAR]
    last_scalar = max(scalar, key=lambda each: each.end, default=None)
    if last_scalar is not None and (latest is None or last_scalar.end > latest.end):
        return last_scalar.told
    if latest is not None:
        return latest.told
    return "the start of the block" if since <= events[0].start else "what its own pipe did before"
