"""Whatever host code does wrong becomes a failure that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_side_machine import SIMPLE_CASE, Host, sources_of, tensor, toolchain, toy

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Phase
from ascend_gym.core.status import Status
from npu_daemon.sandbox import ResourceLimits
from npu_daemon.simulator.host_side import build_host

__all__ = ["toolchain"]

TILING_FAULTS = {
    "refuses": (
        'fprintf(stderr, "x is too small\\n"); return ge::GRAPH_FAILED;',
        "returned GRAPH_FAILED\n    x is too",
    ),
    "forgets": ("return ge::GRAPH_SUCCESS;", "SetBlockDim was never called"),
    "no_blocks": (
        "context->SetBlockDim(0); return ge::GRAPH_SUCCESS;",
        "SetBlockDim(0): expected 1 to 65535 blocks",
    ),
    "throws": ('throw std::runtime_error("no plan");', "the host code threw an exception: no plan"),
    "exits": ("exit(3);", "ended the program with exit status 3"),
    "null": ("return *(volatile int *)(context->GetInputDesc(9));", "SIGSEGV: it read or wrote memory"),
    "zero": ("volatile int n = 7, z = 0; return n % z;", "SIGFPE: it divided a whole number by zero"),
    "aborts": ("abort();", "SIGABRT"),
    "overflow": (
        "context->SetBlockDim(1); context->GetRawTilingData()->SetDataSize(1 << 20); return 0;",
        "the tiling data has 1048576 bytes, at most 65536",
    ),
    "lies": (
        'for (int fd = 3; fd < 9; ++fd) dprintf(fd, "{\\"decision\\":{\\"block_dim\\":0}}\\n"); _exit(0);',
        "the tiling decision is not usable: block_dim",
    ),
}
SELECTOR = (
    "switch (context->GetInputShape(0)->GetStorageShape().GetDim(0)) {\n%s\n}\nreturn ge::GRAPH_SUCCESS;"
)


@pytest.fixture(scope="module")
def faulty(toolchain: Path, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """An operator whose tiling function breaks in the way that the first extent of x selects."""
    branches = [f"case {number}: {{ {body} }}" for number, (body, _) in enumerate(TILING_FAULTS.values())]
    text = "#include <unistd.h>\n" + toy(SELECTOR % "\n".join(branches))
    return Host(text, tmp_path_factory.mktemp("faulty"), toolchain, checked=False)


@pytest.mark.parametrize("name", TILING_FAULTS)
def test_a_broken_tiling_function_is_a_tiling_error(faulty: Host, name: str) -> None:
    x = tensor("x", (list(TILING_FAULTS).index(name),))
    failure = faulty.tile(SIMPLE_CASE.model_copy(update={"inputs": (x,)}))
    assert isinstance(failure, Failure)
    assert failure.status is Status.TILING_ERROR
    assert failure.diagnostics[0].phase is Phase.RUN_TILING
    assert TILING_FAULTS[name][1] in failure.diagnostics[0].message


def test_an_endless_tiling_function_is_a_timeout(toolchain: Path, tmp_path: Path) -> None:
    host = Host(toy("for (volatile int i = 0;;) i = i + 1;"), tmp_path, toolchain)
    limits = ResourceLimits(wall_s=0.3, cpu_s=5.0, memory_bytes=1 << 30, file_bytes=1 << 20)
    failure = host.tile(limits=limits)
    assert isinstance(failure, Failure)
    assert failure.status is Status.TIMEOUT
    assert "0.3 s" in failure.diagnostics[0].message


def test_an_operator_without_a_tiling_function_says_how_to_register_one(
    toolchain: Path, tmp_path: Path
) -> None:
    text = toy("return 0;").replace("this->AICore().SetTiling(optiling::TilingFunc);", "")
    failure = Host(text, tmp_path, toolchain).tile()
    assert isinstance(failure, Failure)
    assert "no tiling function registered for Toy: call AICore().SetTiling" in failure.diagnostics[0].message


def test_compiler_errors_point_into_the_operator_folder(toolchain: Path, tmp_path: Path) -> None:
    text = toy("    context->SetBlokDim(1);\n    return ge::GRAPH_SUCCESS;")
    line = text.splitlines().index("    context->SetBlokDim(1);") + 1
    failure = build_host(sources_of(text), tmp_path, toolchain)
    assert isinstance(failure, Failure)
    assert failure.status is Status.BUILD_ERROR
    (found,) = failure.diagnostics
    assert (found.file, found.line, found.phase) == ("op_host/toy.cpp", line, Phase.BUILD_TILING)
    assert "SetBlokDim" in found.message.splitlines()[0]
    assert found.message.splitlines()[1].strip() == "context->SetBlokDim(1);"


def test_a_missing_definition_is_a_build_error(toolchain: Path, tmp_path: Path) -> None:
    text = toy("context->SetBlockDim(plan()); return 0;", "int plan();")
    failure = build_host(sources_of(text), tmp_path, toolchain)
    assert isinstance(failure, Failure)
    assert failure.status is Status.BUILD_ERROR
    assert failure.diagnostics[0].message == "undefined symbol: optiling::plan()"
