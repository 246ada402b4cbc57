"""Lines of sources are found for addresses of libraries, in limited time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from npu_daemon.simulator.places import own_place, source_rows

SOURCE = """\
extern "C" int outside(int);
static inline __attribute__((always_inline)) int inner(int x) {
    return outside(x) + 1;
}
static inline __attribute__((always_inline)) int middle(int x) {
    return inner(x) * 3;
}
extern "C" int entry(int x) {
    return middle(x) - 2;
}
"""


@pytest.fixture(scope="module", params=["-gdwarf-5", "-gdwarf-4"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("places")
    (folder / "op_kernel").mkdir()
    (folder / "op_kernel/a.cpp").write_text(SOURCE)
    command = ["g++", "-O1", "-g1", request.param, "-shared", "-fPIC", "op_kernel/a.cpp", "-o", "a.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "a.so"


def call_of_outside(library: Path) -> str:
    """Return the address of the one call, in hexadecimal digits."""
    listing = subprocess.run(
        ["objdump", "-d", "--disassemble=entry", str(library)], check=True, capture_output=True, text=True
    ).stdout
    (row,) = [row for row in listing.splitlines() if "call" in row]
    return row.partition(":")[0].strip()


def test_inlined_calls_are_told_from_the_innermost(library: Path) -> None:
    rows = source_rows(call_of_outside(library), library)
    assert [row.rpartition("/")[2] for row in rows] == ["a.cpp:3", "a.cpp:6", "a.cpp:9", ""]
    assert own_place(rows) == ("op_kernel/a.cpp", 3)
    assert own_place(["/usr/include/x.h:7", *rows[1:]]) == ("op_kernel/a.cpp", 6)


@pytest.mark.parametrize("frames", ["", "zz", "1,", "ffffffff", "1" * 17, "-i"])
def test_what_is_no_address_has_no_place(library: Path, frames: str) -> None:
    assert own_place(source_rows(frames, library)) == (None, None)


def test_no_more_addresses_are_looked_at_than_a_report_can_have(library: Path) -> None:
    rows = source_rows(",".join(["1"] * 100_000), library)
    assert len(rows) <= 32


def test_what_is_no_library_has_no_places(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(b"\x7fELF" + bytes(60))
    assert source_rows("10", tmp_path / "a.so") == []
    assert source_rows("10", None) == []
