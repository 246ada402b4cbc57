"""Uses of the C++ library in kernels: what is refused and what leaves nothing to call."""

from __future__ import annotations

import pytest

from npu_daemon.simulator.kernel_ir.library_use import LibraryUse
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr


def nodes(*files: str) -> dict[str, str]:
    """Return metadata of an instruction in the first file, inlined into the second, and so on: node 0."""
    found = {}
    for depth, file in enumerate(files):
        base = 10 * depth
        behind = f", inlinedAt: !{base + 10}" if depth + 1 < len(files) else ""
        found[str(base)] = f"distinct !DILocation(line: 7, scope: !{base + 1}{behind})"
        found[str(base + 1)] = f'distinct !DISubprogram(name: "f", file: !{base + 2}, line: 5)'
        found[str(base + 2)] = f'!DIFile(filename: "{file}", directory: "/kernel")'
    return found


SORT, VECTOR, MIN = "/c++/__algorithm/sort.h", "/c++/__vector/vector.h", "/c++/__algorithm/min.h"
TUPLE, ASCEND_C, OWN = "/c++/tuple", "/asim/asim/api/math.h", "op_kernel/own.cpp"


@pytest.mark.parametrize(
    ("files", "what"), [((SORT, OWN), "sort"), ((MIN, SORT, OWN), "sort"), ((VECTOR, OWN), "vector")]
)
def test_containers_and_algorithms_are_refused(files: tuple[str, ...], what: str) -> None:
    with pytest.raises(RefusedIr, match=f"std::{what} of the C\\+\\+ library") as refused:
        LibraryUse(nodes(*files)).check("0")
    assert refused.value.unprovided


@pytest.mark.parametrize("files", [(MIN, OWN), (TUPLE, OWN), (SORT, ASCEND_C, OWN), (OWN,), (ASCEND_C, OWN)])
def test_small_functions_and_those_of_ascend_c_pass(files: tuple[str, ...]) -> None:
    LibraryUse(nodes(*files)).check("0")
    LibraryUse(nodes(*files)).check("")


def test_a_function_of_its_own_is_refused_where_the_kernel_calls_it() -> None:
    both = nodes(OWN) | {
        str(int(key) + 100): text.replace("!1,", "!101,").replace("!2,", "!102,")
        for key, text in nodes(SORT).items()
    }
    both["100"] = "distinct !DILocation(line: 7, scope: !101)"
    both["101"] = 'distinct !DISubprogram(name: "sort", file: !102, line: 5)'
    with pytest.raises(RefusedIr, match="std::sort"):
        LibraryUse(both).check_call("0", "101")
    LibraryUse(both).check_call("100", "101")
