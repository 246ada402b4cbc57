"""The complete operator as one program text: what OpenEvolve evolves, and how it is read back.

Every file stands in the form that all our prompts use, a path header and a fenced block. What may change
lies between marker lines of OpenEvolve's; the rest is fixed:

    ### FILE: op_kernel/gelu.cpp
    ```cpp
    // EVOLVE-BLOCK-START
    ...
    // EVOLVE-BLOCK-END
    extern "C" __global__ __aicore__ void gelu(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
    {
    // EVOLVE-BLOCK-START
    ...

Fixed are the headers and fences, the operator's definition (``OpDef`` class and ``OP_ADD``) and the entry
functions up to their opening brace: interfaces, which no faster operator may change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.rewrites.fenced import render_file, with_last_newline

BLOCK_START = "// EVOLVE-BLOCK-START\n"
BLOCK_END = "// EVOLVE-BLOCK-END\n"

_MARKER = re.compile(r"^([^\w\n]*EVOLVE-BLOCK-(?:START|END)\b[^\n]*\n)", re.MULTILINE)
_INTERFACE = re.compile(
    r"(^[ \t]*class\s+\w+(?:\s+final)?\s*:\s*public\s+(?:\w+::)*OpDef\b.*?^[ \t]*OP_ADD\s*\([^\n]*\n"
    r'|^[ \t]*extern\s+"C"\s[^;{}]*\{[^\n]*\n)',
    re.MULTILINE | re.DOTALL,
)


_NOTHING = re.compile(r"(?:\s|\}|//[^\n]*)*")  # closing braces and comments


@dataclass(frozen=True)
class _Piece:
    text: str
    evolves: bool

    @property
    def marked(self) -> str:
        return f"{BLOCK_START}{self.text}{BLOCK_END}" if self.evolves else self.text


class ProgramText:
    """Translates between the candidates of one operator and program texts.

    Attributes:
        initial: the program of the operator's own sources.
    """

    def __init__(self, base: Candidate) -> None:
        """Lay out the sources of ``base``.

        Raises:
            MisuseError: they hold lines that read as markers.
        """
        self._base = base
        self._files = {path: _pieces(path, text) for path, text in base.texts.items()}
        rendered = [
            render_file(path, "".join(piece.marked for piece in pieces))
            for path, pieces in self._files.items()
        ]
        self.initial = "\n".join(rendered)
        self._parts = _MARKER.split(self.initial)

    def candidate(self, program: str) -> Candidate | str:
        """Return the candidate that ``program`` spells out, or what is wrong with the text.

        Files that are as they were keep their bytes, line ends included.
        """
        parts = _MARKER.split(program)  # fixed text, start, block, end, fixed text, start, block ...
        if len(parts) != len(self._parts):
            wanted, found = len(self._parts) // 2, len(parts) // 2
            return f"the program has {wanted} EVOLVE-BLOCK marker lines, which must stay; {found} are left"
        for index, (part, fixed) in enumerate(zip(parts, self._parts, strict=True)):
            if index % 4 != 2 and part != fixed:
                return f"only text between EVOLVE-BLOCK markers may change: {_first_difference(fixed, part)}"
        blocks = iter(parts[2::4])
        changed = {}
        for path, pieces in self._files.items():
            text = "".join(next(blocks) if piece.evolves else piece.text for piece in pieces)
            if text != "".join(piece.text for piece in pieces):
                changed[path] = text
        return with_texts(self._base, changed)


def _pieces(path: str, text: str) -> list[_Piece]:
    """Cut a file into what may change and what may not; its lines then end as those of OpenEvolve do."""
    lines_end_alike = with_last_newline(text.replace("\r\n", "\n").replace("\r", "\n"))
    if _MARKER.search(lines_end_alike):
        raise MisuseError(f"{path} holds EVOLVE-BLOCK markers: take them out, they are set anew")
    cut = enumerate(_INTERFACE.split(lines_end_alike))
    return [
        _Piece(part, evolves=index % 2 == 0 and not _NOTHING.fullmatch(part)) for index, part in cut if part
    ]


def _first_difference(fixed: str, found: str) -> str:
    """Say where a fixed text first differs."""
    lines, found_lines = fixed.split("\n"), found.split("\n")
    pairs = zip(lines, [*found_lines, *[""] * len(lines)], strict=False)
    line, instead = next((pair for pair in pairs if pair[0] != pair[1]), ("", found_lines[-1]))
    return f"{line!r} became {instead!r}"
