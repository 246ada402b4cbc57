"""Building and asking small operators in tests of the host side."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, DType, SourceFile, Sources, TensorSpec
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator.host_side import (
    ChipGeometry,
    OperatorDefinition,
    TilingOutcome,
    build_host,
    describe_operator,
    run_tiling,
)
from npu_daemon.simulator.host_toolchain import (
    host_assemble_command,
    host_compile_command,
    host_link_command,
)

KIB = 1024
CHIP = ChipGeometry(
    soc_version="Ascend910B2",
    aic_cores=24,
    aiv_cores=48,
    ub_bytes=192 * KIB,
    l1_bytes=512 * KIB,
    l0a_bytes=64 * KIB,
    l0b_bytes=64 * KIB,
    l0c_bytes=128 * KIB,
    l2_bytes=192 * KIB * KIB,
)
HEAD = '#include "register/op_def_registry.h"\n#include "tiling/platform/platform_ascendc.h"\n'
SIMPLE_DEFINITION = """
namespace ops {
class Toy : public OpDef {
 public:
    explicit Toy(const char *name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(Toy);
}
"""


def toy(body: str, declarations: str = "") -> str:
    """Return host code of operator Toy (x -> y, fp16) whose tiling function has this body."""
    return (
        f"{HEAD}namespace optiling {{\n{declarations}\n"
        f"static ge::graphStatus TilingFunc(gert::TilingContext *context) {{\n{body}\n}}\n}}\n"
        f"{SIMPLE_DEFINITION}"
    )


def sources_of(text: str) -> Sources:
    return Sources(files=(SourceFile(path="op_host/toy.cpp", text=text),), main="op_host/toy.cpp")


def tensor(name: str, *shapes: tuple[int, ...], dtype: DType = DType.FLOAT16, **fields: Any) -> TensorSpec:
    return TensorSpec(name=name, dtype=dtype, shapes=shapes, **fields)


SIMPLE_CASE = Case(case_id="c", inputs=(tensor("x", (8, 128)),), outputs=(tensor("y", (8, 128)),))


@pytest.fixture(scope="session")
def toolchain(simulator: SimulatorBackend) -> Path:
    """The host side of the simulator's toolchain."""
    return simulator.toolchain.host_folder


def unchecked_library(source: Path, folder: Path, toolchain: Path) -> Path:
    """Return the library of one host source, made without a look at what it uses."""
    for command in (
        host_compile_command(toolchain, str(source), "unchecked.ll"),
        host_assemble_command("unchecked.ll", "unchecked.o"),
        host_link_command(toolchain, ["unchecked.o"], "unchecked.so"),
    ):
        subprocess.run(command, cwd=folder, check=True)
    return folder / "unchecked.so"


class Host:
    """Built host code of one operator, ready to answer."""

    def __init__(self, text: str, folder: Path, toolchain: Path, *, checked: bool = True) -> None:
        self.folder, self.toolchain = folder, toolchain
        if checked:
            built = build_host(sources_of(text), folder, toolchain)
            assert isinstance(built, Path), built
            self.library = built
        else:
            (folder / "toy.cpp").write_text(text)
            self.library = unchecked_library(folder / "toy.cpp", folder, toolchain)

    def describe(self, chip: ChipGeometry = CHIP, op_type: str | None = None) -> OperatorDefinition | Failure:
        return describe_operator(self.library, chip, self.toolchain, op_type=op_type)

    def definition(self, chip: ChipGeometry = CHIP) -> OperatorDefinition:
        described = self.describe(chip)
        assert isinstance(described, OperatorDefinition), described
        return described

    def tile(self, case: Case = SIMPLE_CASE, **options: Any) -> TilingOutcome | Failure:
        chip = options.pop("chip", CHIP)
        definition = self.definition(chip)
        return run_tiling(self.library, definition, case, chip, self.folder, self.toolchain, **options)

    def decide(self, case: Case = SIMPLE_CASE, **options: Any) -> TilingOutcome:
        outcome = self.tile(case, **options)
        assert isinstance(outcome, TilingOutcome), outcome
        return outcome
