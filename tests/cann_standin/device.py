"""Executes one kernel of the stand-in device: from FOLDER/job and inputs to outputs and FOLDER/result."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import (
    Candidate,
    Case,
    DType,
    MeasureProtocol,
    OpSpec,
    SourceFile,
    Sources,
    TensorSpec,
)
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.cann.arguments import ACL_TYPES
from npu_daemon.simulator.chips import load_chip

DTYPES: dict[int, DType] = {code: dtype for dtype, code in ACL_TYPES.items()}


def read_sources(folder: Path, side: str, mark: str) -> Sources:
    """Return the files of one side; the main one has ``mark`` in it."""
    paths = sorted(path for path in (folder / side).rglob("*") if path.suffix in (".cpp", ".h"))
    files = tuple(SourceFile(path=str(path.relative_to(folder)), text=path.read_text()) for path in paths)
    return Sources(files=files, main=next(file.path for file in files if mark in file.text))


def read_case(folder: Path) -> Case:
    """Return the case that the job describes."""
    tensors: dict[str, list[TensorSpec]] = {"in": [], "out": []}
    attributes: dict[str, int | float] = {}
    for line in (folder / "job").read_text().splitlines():
        kind, name, *words = line.split()
        if kind in tensors:
            shape = tuple(int(word) for word in words[2:])
            tensors[kind].append(TensorSpec(name=name, dtype=DTYPES[int(words[0])], shapes=(shape,)))
        else:
            attributes[name] = float(words[0]) if kind == "real" else int(words[0])
    return Case(
        case_id="device", inputs=tuple(tensors["in"]), outputs=tuple(tensors["out"]), attributes=attributes
    )


def main(folder: Path) -> int:
    """Run the kernel; 3 says that it was not built, another status than 0 is an exception of the device."""
    sources = folder.parent / "src"
    candidate = Candidate(
        host=read_sources(sources, "op_host", "OP_ADD"),
        kernel=read_sources(sources, "op_kernel", "__global__"),
    )
    case = read_case(folder)
    spec = OpSpec(
        op_id=f"standin/{Path(candidate.kernel.main).stem}",
        op_type=(folder.parent / "type").read_text(),
        folder=str(sources),
        level=1,
        category="stand-in",
        description="what the device executes",
        auto_sync=True,
        cases=(case,),
        baseline=candidate,
        folder_digest="0" * 64,
    )
    backend, protocol = SimulatorBackend(Path(os.environ["ASCEND_STANDIN_SIMULATOR"])), MeasureProtocol()
    built = backend.build(spec, case, candidate, protocol)
    run = built
    if not isinstance(built, Failure):
        inputs = [[folder / f"in{index}"] for index in range(len(case.inputs))]
        run = backend.run(built, case, inputs, protocol)
    if isinstance(run, Failure):
        sys.stderr.write(f"{run.diagnostics}\n")
        return 1
    other = "other_key" in (folder.parent / "directives").read_text().split()
    key = run.handle.tiling.tiling_key + other
    if f"key {key}" not in (folder.parent / "kernels").read_text().splitlines():
        return 3
    for index, arrays in enumerate(run.outputs):
        np.ascontiguousarray(arrays[0]).tofile(folder / f"out{index}")
    price = backend.price(run, load_chip("910B2"))
    blocks = run.handle.tiling.block_dim
    (folder / "result").write_text(f"{price['task_us']} {blocks}\n")
    backend.cleanup(run)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
