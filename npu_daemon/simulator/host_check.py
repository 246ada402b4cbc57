"""What tiling programs may use: the host library, containers, strings, mathematics and memory.

Looks at the LLVM IR that their sources became, where macros, attributes and labels have done what they do: each
function and variable that a module takes from elsewhere has to be on a list, and so has each intrinsic.
A tiling program still runs confined; the list keeps its decisions from depending on time, chance or files.
"""

from __future__ import annotations

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Sources


def refused_modules(texts: list[str], offered: frozenset[str], sources: Sources) -> Failure | None:
    """Return why modules are not linked, or ``None``."""
    return None
