"""Uses of the C++ library at run time, which the compiler of devices refuses.

Limits of the language (asc-devkit): no STL, and no algorithms whose functions are not marked for kernels.

Type traits, ``min``, ``max`` and the like leave nothing to call. What Ascend C's own headers use is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from npu_daemon.simulator.kernel_ir.debug_info import places_of
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr

_LIBRARY = "/c++"  # where compilers of kernels see the headers (``clang``)
_ASCEND_C = "/asim/"
_AT_RUN_TIME = re.compile(
    rf"{re.escape(_LIBRARY)}(?:abi)?/(?:"
    r"__algorithm/(?!(?:min|max|minmax|clamp|comp\w*|min_max\w*)\.h)(?P<algorithm>\w+)"
    r"|__numeric/(?P<sum>\w+)"
    r"|(?:__)?(?P<container>vector|string|deque|list|forward_list|map|set|tree|hash_table|unordered_\w+|\w*stream\w*)\b)"
)


class LibraryUse:
    """Looks at the places of one module's instructions, each once.

    Args:
        nodes: its debug metadata by number.
    """

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self._nodes = nodes
        self._seen: set[str] = set()

    def check(self, debug: str) -> None:
        """Refuse an instruction of the library that a kernel's own text has brought in.

        Args:
            debug: number of the instruction's ``!dbg`` node, or nothing.

        Raises:
            RefusedIr: it is part of a container or an algorithm.
        """
        if not debug or debug in self._seen:
            return
        self._seen.add(debug)
        entry = ""
        for file, _ in places_of(self._nodes, debug):
            if file.startswith(_LIBRARY):
                entry = file
                continue
            if not file.startswith(_ASCEND_C):
                self._refuse(entry, debug)
            return

    def check_call(self, debug: str, callee_debug: str) -> None:
        """Likewise a call of a function of the library that is compiled beside the kernel.

        Args:
            debug: of the call.
            callee_debug: of the function, or nothing.

        Raises:
            RefusedIr: a kernel's own text calls it.
        """
        caller = places_of(self._nodes, debug)
        callee = places_of(self._nodes, callee_debug)
        if caller and callee and not caller[0][0].startswith((_LIBRARY, _ASCEND_C)):
            self._refuse(callee[0][0], debug)

    def _refuse(self, file: str, debug: str) -> None:
        found = _AT_RUN_TIME.match(file)
        if found is None:
            return
        what = found["algorithm"] or found["sum"] or found["container"]
        raise RefusedIr(
            f"the kernel uses std::{what} of the C++ library, which kernels do not have at run time: "
            "use vector instructions, or arrays and loops",
            debug,
            unprovided=True,
        )
