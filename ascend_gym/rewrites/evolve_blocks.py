"""The comments that mark code as open to evolution."""

from __future__ import annotations

import re

START = "// EVOLVE-BLOCK-START"
END = "// EVOLVE-BLOCK-END"

MARKER = re.compile(r"^[ \t]*//[ \t]*EVOLVE-BLOCK-(START|END)\b[^\n]*(?:\n|\Z)", re.MULTILINE)
"""A line that is a marker; its group is the kind of marker."""

_STANDARD_HEADER = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<[^>\n]+>[^\n]*\n", re.MULTILINE)


def frozen_parts(text: str) -> list[str]:
    """Return the code before, between and behind the evolve blocks of a marked file.

    Standard headers are left out: code inside a block may need one, and they stand at the top of the file.
    """
    return [_STANDARD_HEADER.sub("", part) for part in MARKER.split(text)[::4]]
