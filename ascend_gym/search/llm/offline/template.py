"""Marking what of a tiling program can evolve.

These are its constants, the body of the tiling function, and every other function in which a rewrite rule of
the tiling side finds something to change.
"""

from __future__ import annotations

import re
from collections import defaultdict

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.answer import render_edits
from ascend_gym.rewrites.constants import constants_of, names_buffer_count, names_core_count, names_tile
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import File, Side
from ascend_gym.rewrites.syntax import Edit, Source, ancestor, parse, splice
from ascend_gym.search.llm.offline.picking import SeededChoice
from ascend_gym.search.llm.offline.reading import candidate_in

_MARKERS = re.compile(r"`(//[^`\n]*START[^`\n]*)`.*?`(//[^`\n]*END[^`\n]*)`", re.DOTALL)


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with the host files, the markers that the prompt names put into them."""
    candidate, markers = candidate_in(prompt), _MARKERS.search(prompt)
    if candidate is None or markers is None:
        return "The prompt holds no operator, or does not say how to mark its blocks."
    parts = ["The constants that cut the work, and the tiling function:"]
    places = _places(candidate)
    for file in candidate.host.files:
        marked = _marked(file.path, file.text, places[file.path], markers[1], markers[2])
        if marked != file.text:
            parts.append(render_edits(file.path, file.text, marked))
    return "\n".join(parts)


def _places(candidate: Candidate) -> dict[str, set[int]]:
    """Return by file the bytes where rules of the tiling side would edit it, but for the top."""
    places: dict[str, set[int]] = defaultdict(set)
    for rule in RULES:
        for site in rule.sites(candidate) if rule.side is Side.TILING else ():
            for choice in site.choices:
                for each in choice.edits:
                    places[each.path].add(each.edit.start_byte)
    return defaultdict(set, {path: found - {0} for path, found in places.items()})


def _marked(path: str, text: str, places: set[int], start: str, end: str) -> str:
    source = parse(text)
    edits = []
    constants = _constant_lines(File(path, source))
    for begin, stop in _joined([*constants, *_body_ranges(source, places)], source):
        edits += [Edit(begin, begin, f"{start}\n"), Edit(stop, stop, f"{end}\n")]
    return splice(text, edits)


def _constant_lines(file: File) -> list[tuple[int, int]]:
    """Return the lines of constants outside of functions that are named like something to tune."""
    ranges = []
    for constant in constants_of(file):
        tunable = names_tile(constant) or names_buffer_count(constant) or names_core_count(constant)
        tunable = tunable or constant.is_fixed
        if tunable and ancestor(constant.value_node, "function_definition") is None:
            ranges.append(
                _whole_lines(file.source, constant.value_node.start_byte, constant.value_node.end_byte)
            )
    return ranges


def _body_ranges(source: Source, places: set[int]) -> list[tuple[int, int]]:
    """Return the lines inside the functions that take the tiling context or hold one of the places."""
    ranges = []
    for function in source.nodes("function_definition"):
        declarator, body = function.child_by_field_name("declarator"), function.child_by_field_name("body")
        statements = body.named_children if body is not None else []
        if declarator is None or not statements:
            continue
        first, last = statements[0], statements[-1]
        holds_place = any(first.start_byte <= place < last.end_byte for place in places)
        if holds_place or "TilingContext*" in source.bare(declarator):
            ranges.append(_whole_lines(source, first.start_byte, last.end_byte))
    return ranges


def _whole_lines(source: Source, begin: int, end: int) -> tuple[int, int]:
    start = source.data.rfind(b"\n", 0, begin) + 1
    stop = source.data.find(b"\n", end)
    return start, len(source.data) if stop < 0 else stop + 1


def _joined(ranges: list[tuple[int, int]], source: Source) -> list[tuple[int, int]]:
    """Join ranges with nothing but blanks between them."""
    joined: list[tuple[int, int]] = []
    for begin, stop in sorted(set(ranges)):
        if joined and not source.data[joined[-1][1] : begin].strip():
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((begin, stop))
    return joined
