"""Timelines of launches as a Chrome trace, for Perfetto or chrome://tracing; written line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from npu_daemon.profiling.launch_profile import LaunchProfile

_PIPE_ORDER = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")


def write_chrome_trace(launches: Sequence[LaunchProfile], path: Path) -> str | None:
    """Write the timelines of ``launches``, one after another; return a note if events were left out.

    One process per launch, one row per core and pipe, times in microseconds.
    """
    notes = [note for note in map(_left_out, launches) if note]
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "otherData": ')
        json.dump({"generator": "ascend-gym", "chip": launches[0].chip.name, "notes": notes}, file)
        file.write(',\n"traceEvents": [\n')
        for number, event in enumerate(_events(launches)):
            file.write((",\n" if number else "") + json.dumps(event, separators=(",", ":")))
        file.write("\n]}\n")
    return "; ".join(notes) or None


def _left_out(launch: LaunchProfile) -> str | None:
    events, written = launch.price["timeline_events"], launch.price["timeline_written"]
    if events == written:
        return None
    return (
        f"launch {launch.index} ({launch.kernel}): the trace holds the first {written} of {events} events; "
        "raise --max-events for more"
    )


def _events(launches: Sequence[LaunchProfile]) -> Iterator[dict[str, Any]]:
    start_us = 0.0
    for launch in launches:
        yield {
            "ph": "M",
            "name": "process_name",
            "pid": launch.index,
            "tid": 0,
            "args": {"name": f"{launch.index} {launch.kernel}"},
        }
        yield from _launch_events(launch, start_us)
        start_us += launch.task_us


def _launch_events(launch: LaunchProfile, start_us: float) -> Iterator[dict[str, Any]]:
    if launch.timeline is None:
        raise ValueError("this launch was priced without a timeline")
    labels = launch.core_labels()
    named: set[int] = set()
    with launch.timeline.open(encoding="ascii") as lines:
        for line in lines:
            core, pipe, name, start, end, moved_bytes = line.split()
            row = int(core) * len(_PIPE_ORDER) + _PIPE_ORDER.index(pipe)
            if row not in named:
                named.add(row)
                group, label = labels[int(core)]
                yield from _row_names(launch.index, row, f"core {group} {label} {pipe}")
            begin_us, end_us = launch.microseconds(float(start)), launch.microseconds(float(end))
            yield {
                "ph": "X",
                "name": name,
                "cat": pipe,
                "pid": launch.index,
                "tid": row,
                "ts": round(start_us + begin_us, 6),
                "dur": round(end_us - begin_us, 6),
                "args": {"bytes": int(moved_bytes)} if moved_bytes != "0" else {},
            }


def _row_names(pid: int, row: int, label: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": row, "args": {"name": label}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": row, "args": {"sort_index": row}}
