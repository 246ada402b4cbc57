"""Marking what of a tiling program can evolve: its constants and the body of the tiling function."""

from __future__ import annotations

import re

from ascend_gym.rewrites.answer import render_edits
from ascend_gym.rewrites.constants import constants_of, names_buffer_count, names_core_count, names_tile
from ascend_gym.rewrites.rule import File
from ascend_gym.rewrites.syntax import Edit, Source, ancestor, parse, splice
from ascend_gym.search.llm.offline.reading import candidate_in
from ascend_gym.search.llm.offline.seeded_choice import SeededChoice

_MARKERS = re.compile(r"`(//[^`\n]*START[^`\n]*)`.*?`(//[^`\n]*END[^`\n]*)`", re.DOTALL)


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with the host files, the markers that the prompt names put into them."""
    candidate, markers = candidate_in(prompt), _MARKERS.search(prompt)
    if candidate is None or markers is None:
        return "The prompt holds no operator, or does not say how to mark its blocks."
    parts = ["The constants that cut the work, and the tiling function:"]
    for file in candidate.host.files:
        marked = _marked(file.path, file.text, markers[1], markers[2])
        if marked != file.text:
            parts.append(render_edits(file.path, file.text, marked))
    return "\n".join(parts)


def _marked(path: str, text: str, start: str, end: str) -> str:
    source = parse(text)
    edits = []
    for begin, stop in _joined([*_constant_lines(File(path, source)), *_body_ranges(source)], source):
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


def _body_ranges(source: Source) -> list[tuple[int, int]]:
    """Return the lines inside the functions that take the tiling context."""
    ranges = []
    for function in source.nodes("function_definition"):
        declarator, body = function.child_by_field_name("declarator"), function.child_by_field_name("body")
        takes_context = declarator is not None and "TilingContext*" in source.bare(declarator)
        statements = body.named_children if body is not None else []
        if takes_context and statements:
            first, last = statements[0], statements[-1]
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
