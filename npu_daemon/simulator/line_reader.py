"""The program that reads source places of addresses out of a library's debug information.

Compilers wrote what it reads, but of sources that nobody here trusts: it runs confined and with limits. The
process server of the sandbox loads it once and forks for each reading; nothing here may import more than the
standard library and pyelftools.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from elftools.elf.elffile import ELFFile

MAX_ROW_CHARS = 1000
_CODE_TAGS = ("DW_TAG_inlined_subroutine", "DW_TAG_subprogram")


def main(arguments: Sequence[str]) -> int:
    """Print, for each address, the rows of its places, and an empty row.

    A row is ``FILE:LINE``: of the instruction, then of each call inlined around it, from the innermost.

    Args:
        arguments: path of the library, and addresses as hexadecimal offsets in it.

    Returns:
        The exit status.
    """
    library, *words = arguments
    addresses = [int(word, 16) for word in words]
    rows: dict[int, list[str]] = {}
    with open(library, "rb") as stream:
        file = ELFFile(stream)
        if file.has_dwarf_info():
            dwarf = file.get_dwarf_info()
            for unit in dwarf.iter_CUs():
                _add_rows(dwarf, unit, addresses, rows)
    for address in addresses:
        print("".join(f"{row[-MAX_ROW_CHARS:]}\n" for row in rows.get(address, ())))
    sys.stdout.flush()
    return 0


def _add_rows(dwarf: Any, unit: Any, addresses: list[int], rows: dict[int, list[str]]) -> None:
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return
    calls = _inlined_calls(dwarf, unit, program, addresses)
    for address, row in _lines(program, addresses):
        rows.setdefault(address, [row, *reversed(calls[address])])


def _lines(program: Any, addresses: list[int]) -> Iterator[tuple[int, str]]:
    """Yield the addresses that the line program covers, with their rows.

    An instruction that no line asked for (line 0) has the row of the one in front of it.
    """
    before = place = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None:
            place = before if before.line or place is None else place
            for address in addresses:
                if before.address <= address < state.address:
                    yield address, f"{_file_name(program, place.file)}:{place.line}"
        before, place = (None, None) if state.end_sequence else (state, place)


def _inlined_calls(dwarf: Any, unit: Any, program: Any, addresses: list[int]) -> dict[int, list[str]]:
    """Return the places of inlined calls around each address, from the outermost."""
    calls: dict[int, list[str]] = {address: [] for address in addresses}
    for entry in unit.iter_DIEs():
        if entry.tag not in _CODE_TAGS:
            continue
        ranges = _ranges(dwarf, unit, entry)
        for address in addresses:
            if not any(begin <= address < end for begin, end in ranges):
                continue
            if entry.tag == "DW_TAG_subprogram":
                calls[address].clear()
            elif "DW_AT_call_line" in entry.attributes:
                file = _file_name(program, entry.attributes["DW_AT_call_file"].value)
                calls[address].append(f"{file}:{entry.attributes['DW_AT_call_line'].value}")
    return calls


def _ranges(dwarf: Any, unit: Any, entry: Any) -> list[tuple[int, int]]:
    attributes = entry.attributes
    if "DW_AT_ranges" in attributes:
        return _listed_ranges(dwarf, unit, attributes["DW_AT_ranges"].value)
    if "DW_AT_low_pc" not in attributes or "DW_AT_high_pc" not in attributes:
        return []
    low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
    return [(low, high.value if high.form == "DW_FORM_addr" else low + high.value)]


def _listed_ranges(dwarf: Any, unit: Any, offset: int) -> list[tuple[int, int]]:
    top = unit.get_top_DIE().attributes
    base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
    found = []
    for part in dwarf.range_lists().get_range_list_at_offset(offset, unit):
        if hasattr(part, "base_address"):
            base = part.base_address
        else:
            start = 0 if part.is_absolute else base
            found.append((start + part.begin_offset, start + part.end_offset))
    return found


def _file_name(program: Any, index: int) -> str:
    header = program.header
    files, folders = header.file_entry, header.include_directory
    first = (
        0 if header.version >= 5 else 1
    )  # before DWARF 5, files count from 1 and folder 0 is the compiler's
    if not 0 <= index - first < len(files):
        return "?"
    file = files[index - first]
    folder = file.dir_index - first
    parts = [folders[folder]] if 0 <= folder < len(folders) else []
    path: str = os.path.join(*(part.decode("utf-8", "replace") for part in (*parts, file.name)))
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
