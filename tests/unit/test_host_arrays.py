"""Arrays of variable length that tiling programs set to zero where they are declared."""

from __future__ import annotations

from ascend_gym.core.records import Diagnostic, Phase
from npu_daemon.simulator.host_build import REFUSED, refused_lines, with_cleared_arrays

TEXT = """struct Fixed { uint32_t list[4] = {0}; };
void f(uint32_t n) {
    uint32_t first[n] = {0};
    int64_t second[n] = { };
    uint32_t third[n] = {1};
    uint32_t other[n + 1] = {0};
}
"""


def test_arrays_of_a_refused_extent_are_cleared_and_lines_stay() -> None:
    changed = with_cleared_arrays(TEXT, [3])
    assert "uint32_t first[n]; __builtin_memset(first, 0, sizeof(first));" in changed
    assert "int64_t second[n]; __builtin_memset(second, 0, sizeof(second));" in changed
    assert changed.split("\n")[0] == TEXT.split("\n")[0], "members have other extents"
    assert changed.split("\n")[4:] == TEXT.split("\n")[4:], "values other than 0, and extents not refused"


def test_nothing_is_changed_where_no_such_array_stands() -> None:
    assert with_cleared_arrays(TEXT, [2, 99]) == TEXT


def test_only_the_message_of_clang_about_them_counts() -> None:
    def told(message: str, line: int | None) -> Diagnostic:
        return Diagnostic(phase=Phase.BUILD_TILING, message=message, file="op_host/a.cpp", line=line)

    found = refused_lines(
        [told(f"{REFUSED}\n    x", 3), told("other", 4), told(REFUSED, None), told(REFUSED, 9)]
    )
    assert found == {"op_host/a.cpp": [3, 9]}
