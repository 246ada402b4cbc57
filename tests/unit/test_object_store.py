"""Compiled parts of the simulator are found again, and made again only when what goes into them changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ascend_gym.core.errors import InfrastructureError
from npu_daemon.simulator import object_store
from npu_daemon.simulator.compiler import call_tool, lld
from npu_daemon.simulator.elf_symbols import dynamic_symbols
from npu_daemon.simulator.object_store import DIGEST_SUFFIX, ObjectStore, Part

SOURCE = '#include "outer.h"\nint answer() { return VALUE; }\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "headers").mkdir()
    (tmp_path / "part.cpp").write_text(SOURCE)
    (tmp_path / "headers" / "outer.h").write_text('#pragma once\n#include "inner.h"\n')
    (tmp_path / "headers" / "inner.h").write_text("#define VALUE 7\n")
    (tmp_path / "headers" / "unused.h").write_text("#error never read\n")
    return tmp_path


def kept_parts(folder: Path, options: tuple[str, ...] = ()) -> set[Path]:
    """Compile the part as a new process would, and return everything that the store keeps."""
    target = folder / "part.o"
    target.unlink(missing_ok=True)
    flags = (f"-I{folder / 'headers'}", *options, "-c")
    ObjectStore(folder / "store").compile(Part(flags, folder / "part.cpp", target))
    call_tool(lld("-shared", str(target), "-o", str(folder / "part.so")))
    assert dynamic_symbols(folder / "part.so").defined == {"_Z6answerv"}
    return {path for path in (folder / "store").iterdir() if path.suffix != DIGEST_SUFFIX}


def test_an_equal_compilation_is_not_made_again(folder: Path) -> None:
    first = kept_parts(folder)
    (folder / "headers" / "unused.h").write_text("#error still never read\n")
    assert kept_parts(folder) == first
    assert len(first) == 1


def test_a_part_that_another_process_made_meanwhile_is_not_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def slow_tool(command: Sequence[str]) -> None:
        if not made:  # another process has the same part compiled before this one has
            made.append(0)
            (first,) = filter(Path.is_file, kept_parts(folder))
            made[0] = first.stat().st_ino
        call_tool(command)

    monkeypatch.setattr(object_store, "call_tool", slow_tool)
    part = Part((f"-I{folder / 'headers'}", "-c"), folder / "part.cpp", folder / "second.o")
    ObjectStore(folder / "store").compile(part)
    assert part.target.stat().st_ino == made[0]


@pytest.mark.parametrize("changed", ["part.cpp", "headers/outer.h", "headers/inner.h"])
def test_a_change_of_any_file_that_goes_into_it_is_seen(folder: Path, changed: str) -> None:
    first = kept_parts(folder)
    path = folder / changed
    path.write_text(f"{path.read_text()}// changed\n")
    assert len(kept_parts(folder) - first) == 1


def test_a_change_of_the_options_is_seen(folder: Path) -> None:
    assert kept_parts(folder) < kept_parts(folder, ("-O1",))


def test_a_source_that_does_not_compile_is_told_and_not_kept(folder: Path) -> None:
    (folder / "headers" / "inner.h").write_text("#define VALUE nothing_like_that\n")
    with pytest.raises(InfrastructureError, match="nothing_like_that"):
        kept_parts(folder)
    assert not list((folder / "store").iterdir())


def test_a_missing_tool_is_told() -> None:
    with pytest.raises(InfrastructureError, match=r"needs no-such-tool.*install ascend-gym again"):
        call_tool(["no-such-tool"])


def test_what_a_wheel_brings_is_not_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (brought,) = kept_parts(folder)
    monkeypatch.setattr("npu_daemon.simulator.object_store.SHIPPED", folder / "store")
    target, own = folder / "again.o", folder / "own"
    part = Part((f"-I{folder / 'headers'}", "-c"), folder / "part.cpp", target)
    assert ObjectStore(own).is_shipped(part)
    ObjectStore(own).compile(part)
    assert target.read_bytes() == brought.read_bytes()
    assert not own.exists()
    (folder / "headers" / "inner.h").write_text("#define VALUE 8\n")
    changed = Part((f"-I{folder / 'headers'}", "-c"), folder / "part.cpp", folder / "changed.o")
    assert not ObjectStore(own).is_shipped(changed)
    ObjectStore(own).compile(changed)
    assert len([path for path in own.iterdir() if path.suffix != DIGEST_SUFFIX]) == 1
