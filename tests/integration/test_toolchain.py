"""The toolchain of the simulator: what editors are told of it, and where it lies."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ascend_gym.core.wheel import compiler_program
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator.compile_commands import FILE_NAME, main
from npu_daemon.simulator.object_store import DIGEST_SUFFIX, PRECOMPILED_SUFFIX, ObjectStore
from npu_daemon.simulator.own_sources import SOURCES
from npu_daemon.simulator.task_type import CoreKind
from npu_daemon.simulator.toolchain import (
    compile_for_wheel,
    object_store,
    obtain_toolchain,
    toolchain_parts,
)

BITCODE = b"BC\xc0\xde"


def test_every_source_is_listed_and_compiles_as_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(tmp_path)])
    entries = json.loads((tmp_path / FILE_NAME).read_text(encoding="utf-8"))
    listed = [Path(entry["file"]) for entry in entries]
    assert capsys.readouterr().out == f"{tmp_path / FILE_NAME}: {len(listed)} sources\n"
    assert len(listed) == len(set(listed))
    built = {path for path in SOURCES.rglob("*.cpp") if path.parent.name != "support"}
    assert {path for path in listed if path.suffix == ".cpp"} == built
    for name in ("rerun.cpp", "asim_kernel.h"):
        entry = next(entry for entry in entries if Path(entry["file"]).name == name)
        driver, *options = entry["arguments"]
        assert driver == "clang++"
        subprocess.run(
            [compiler_program(), "clang", *options, "-fsyntax-only"],
            cwd=entry["directory"],
            check=True,
            timeout=120,
        )


def test_a_toolchain_is_built_where_it_lies_whatever_leads_there(
    simulator: SimulatorBackend, simulator_cache: Path
) -> None:
    def announce(message: str) -> None:
        pytest.fail(f"built again: {message}")

    through_a_link = obtain_toolchain(simulator_cache, announce).folder
    assert (simulator_cache / "toolchain").is_symlink()
    assert through_a_link == simulator.toolchain.folder == through_a_link.resolve()


@pytest.mark.parametrize("kind", CoreKind)
def test_what_programs_read_first_is_precompiled_once(simulator: SimulatorBackend, kind: CoreKind) -> None:
    toolchain = simulator.toolchain
    header = toolchain.program_header(kind, marked=False)
    made = header.stat()
    assert made.st_size > 1_000_000
    assert toolchain.program_header(kind, marked=False) == header
    assert header.stat().st_ino == made.st_ino


def _kept_in_the_test_cache(request: pytest.FixtureRequest, shipped: Path, scratch: Path) -> None:
    """Fill a store with what the test cache has of it: what is to be compiled has been, for the simulator."""
    cache, store = object_store(request.config.cache.mkdir("simulator")), ObjectStore(shipped)
    shipped.mkdir()
    for part in toolchain_parts(scratch):
        part.target.parent.mkdir(parents=True, exist_ok=True)
        cache.compile(part)
        store.replace(part, part.target)


@pytest.mark.slow
def test_a_wheel_with_compiled_parts_leaves_only_headers_to_compile(
    simulator: SimulatorBackend,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shipped = tmp_path / "shipped"
    _kept_in_the_test_cache(request, shipped, tmp_path / "parts")
    compile_for_wheel(shipped)
    assert not [file.name for file in shipped.iterdir() if file.read_bytes().startswith(BITCODE)]
    monkeypatch.setattr("npu_daemon.simulator.object_store.SHIPPED", shipped)
    announced: list[str] = []
    toolchain = obtain_toolchain(tmp_path / "cache", announced.append)
    assert "some seconds" in announced[0]
    assert toolchain.price_program.is_file()
    compiled = list((tmp_path / "cache" / "toolchain" / "objects").iterdir())
    assert {file.suffix for file in compiled} == {PRECOMPILED_SUFFIX, DIGEST_SUFFIX}
