"""The comments that mark code as open to evolution."""

from __future__ import annotations

import re

START = "// EVOLVE-BLOCK-START"
END = "// EVOLVE-BLOCK-END"

MARKER = re.compile(r"^[ \t]*//[ \t]*EVOLVE-BLOCK-(START|END)\b[^\n]*(?:\n|\Z)", re.MULTILINE)
"""A line that is a marker; its group is the kind of marker."""
