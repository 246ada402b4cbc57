"""Host function of a program in a case: launch, numbers, room that buffers take; the interface it serves."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascend_gym.core.records import Case, DType
from ascend_gym.staged.lifetimes import Lifetimes
from ascend_gym.staged.scalars import Env, compiled
from ascend_gym.staged.syntax import BLOCK_BYTES, GENERIC, SIZES_BYTES, Program, StagedError
from ascend_gym.suite.skeleton import Interface, Parameter

DTYPES = {
    DType.FLOAT32: "f32",
    DType.FLOAT16: "f16",
    DType.INT32: "i32",
    DType.UINT8: "u8",
    DType.BOOL: "u8",
}
"""Element types of the language by those of cases."""

_SAID = {"gm": "inputs", "out": "outputs"}
UB_BYTES = 196352
"""What kernels have of the unified buffer: 192 KiB less the 256 bytes that belong to the system."""

MAX_CORES = 48


def check_interface(program: Program, interface: Interface) -> None:
    """Check that a program has the tensors and attributes of an operator.

    Raises:
        StagedError: it has others.
    """
    for role, wanted in (("gm", interface.inputs), ("out", interface.outputs)):
        got = [each.name for each in program.tensors if each.role == role]
        names = [each.name for each in wanted]
        if got != names:
            raise StagedError(
                0, f"the operator's {_SAID[role]} are {', '.join(names)}; the kernel has {', '.join(got)}"
            )
        for parameter in wanted:
            _check_dtype(program, parameter)
    attributes = [name for name, _ in interface.attributes]
    for each in program.attributes:
        if each.name not in attributes:
            raise StagedError(
                0,
                f"host takes {each.name!r}; attributes of the operator are {', '.join(attributes) or 'none'}",
            )


def _check_dtype(program: Program, parameter: Parameter) -> None:
    dtype = program.tensor(parameter.name).dtype
    wanted = {DTYPES.get(each) for each in parameter.dtypes}
    if None in wanted:
        raise StagedError(0, f"{parameter.name}: the language has no {parameter.dtypes[0].value}")
    first = program.tensors[0].name == parameter.name
    if dtype != GENERIC and wanted != {dtype}:
        names = " and ".join(sorted(str(each) for each in wanted))
        hint = "; declare it as T" if len(wanted) > 1 else ""
        raise StagedError(0, f"{parameter.name} is {names} in the cases, the kernel says {dtype}{hint}")
    if dtype == GENERIC and first and not wanted <= {"f32", "f16"}:
        raise StagedError(0, f"{parameter.name}: T stands for f32 or f16")


@dataclass(frozen=True)
class StagedLaunch:
    """What the host decides for one case.

    Attributes:
        cores: blocks launched.
        workspace: elements of workspace.
        numbers: what the kernel takes, by name.
        dtypes: element type of each tensor and buffer by name, ``T`` resolved.
        elems: elements of each buffer.
    """

    cores: int
    workspace: int
    numbers: Mapping[str, Any]
    dtypes: Mapping[str, str]
    elems: Mapping[str, int]

    def buffer_bytes(self, name: str) -> int:
        """Return the bytes that one tensor of a buffer takes."""
        size_bytes = self.elems[name] * SIZES_BYTES[self.dtypes[name]]
        return -(-size_bytes // BLOCK_BYTES) * BLOCK_BYTES

    def ub_bytes(self, depths: Mapping[str, int]) -> int:
        """Return what all buffers take, queues with their depths."""
        return sum(self.buffer_bytes(name) * depths.get(name, 1) for name in self.elems)


def launch_of(
    program: Program, case: Case, cores: int = MAX_CORES, knobs: Mapping[str, int] | None = None
) -> StagedLaunch:
    """Run the host function of a program on a case.

    Args:
        program: the program.
        case: gives shapes and attributes.
        cores: vector cores of the chip.
        knobs: values of knobs other than their defaults.

    Raises:
        StagedError: an expression has no value, or the launch is impossible.
    """
    env = _host_env(program, case)
    functions = _functions(
        _shapes(program, case), cores, {k.name: k.default for k in program.knobs.values()} | dict(knobs or {})
    )
    for assignment in program.host:
        env[assignment.name] = compiled(assignment.value, functions)(env)
    launched = int(compiled(program.cores, functions)(env))
    if not 1 <= launched <= cores:
        raise StagedError(
            program.cores.lineno, f"cores must be 1 to {cores}, case {case.case_id} gives {launched}"
        )
    workspace = 0 if program.workspace is None else int(compiled(program.workspace, functions)(env))
    numbers = {
        each.name: np.float32(env[each.name]) if each.dtype == "f32" else int(env[each.name])
        for each in program.scalars
    }
    dtypes = _dtypes(program, case)
    inner = {**numbers}
    elems = {alloc.name: int(compiled(alloc.elems, {})(inner)) for alloc in program.allocs}
    for alloc in program.allocs:
        if elems[alloc.name] < 1:
            raise StagedError(
                alloc.line, f"{alloc.name} has {elems[alloc.name]} elements in case {case.case_id}"
            )
        dtypes[alloc.name] = dtypes[program.tensors[0].name] if alloc.dtype == GENERIC else alloc.dtype
    return StagedLaunch(launched, workspace, numbers, dtypes, elems)


def depths_of(program: Program, lifetimes: Lifetimes, launches: list[StagedLaunch]) -> dict[str, int]:
    """Return the depth of each queue: two in loops if they fit in every case, else one.

    Raises:
        StagedError: buffers do not fit at all.
    """
    depths = lifetimes.depths()
    if all(launch.ub_bytes(depths) <= UB_BYTES for launch in launches):
        return depths
    depths = lifetimes.depths(1)
    worst = max(launches, key=lambda launch: launch.ub_bytes(depths))
    if worst.ub_bytes(depths) > UB_BYTES:
        sizes = ", ".join(f"{name} {worst.buffer_bytes(name)}" for name in worst.elems)
        raise StagedError(
            program.allocs[0].line,
            f"buffers take {worst.ub_bytes(depths)} bytes, there are {UB_BYTES}: {sizes}; make tiles smaller",
        )
    return depths


def _host_env(program: Program, case: Case) -> Env:
    env: Env = {}
    for each in program.attributes:
        value = case.attributes.get(each.name)
        if value is None or isinstance(value, (str, tuple)):
            raise StagedError(0, f"attribute {each.name!r} is no number in case {case.case_id}: {value!r}")
        env[each.name] = np.float32(value) if each.dtype == "f32" else int(value)
    return env


def _shapes(program: Program, case: Case) -> dict[str, tuple[int, ...]]:
    shapes = {tensor.name: tensor.shapes[0] for tensor in (*case.inputs, *case.outputs)}
    missing = [each.name for each in program.tensors if each.role != "work" and each.name not in shapes]
    if missing:
        raise StagedError(0, f"case {case.case_id} has no tensor {missing[0]!r}")
    return shapes


def _dtypes(program: Program, case: Case) -> dict[str, str]:
    given = {tensor.name: DTYPES.get(tensor.dtype, "") for tensor in (*case.inputs, *case.outputs)}
    generic = given.get(program.tensors[0].name, "")
    found = {each.name: generic if each.dtype == GENERIC else each.dtype for each in program.tensors}
    for name, dtype in found.items():
        if given.get(name, dtype) != dtype:
            raise StagedError(
                0, f"{name} is {given[name] or 'of another type'} in case {case.case_id}, not {dtype}"
            )
    return found


def _functions(shapes: Mapping[str, tuple[int, ...]], cores: int, knobs: Mapping[str, int]) -> dict[str, Any]:
    def size(node: ast.Call) -> Any:
        return lambda env: math.prod(shapes[_name(node.args[0])])

    def dim(node: ast.Call) -> Any:
        name = _name(node.args[0])
        try:
            extent = shapes[name][int(ast.literal_eval(node.args[1]))]
        except (ValueError, IndexError, KeyError) as error:
            shape = shapes.get(name)
            raise StagedError(node.lineno, f"{ast.unparse(node)}: {name} has the shape {shape}") from error
        return lambda env: extent

    def knob(node: ast.Call) -> Any:
        assert isinstance(node.args[0], ast.Constant)
        value = knobs[str(node.args[0].value)]
        return lambda env: value

    return {
        "size": size,
        "dim": dim,
        "knob": knob,
        "vec_cores": lambda node: lambda env: cores,
        "ub_bytes": lambda node: lambda env: UB_BYTES,
    }


def _name(node: ast.expr) -> str:
    assert isinstance(node, ast.Name)
    return node.id
