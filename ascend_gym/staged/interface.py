"""Whether a program has the tensors and attributes of the operator that it is for."""

from __future__ import annotations

from ascend_gym.core.records import DType
from ascend_gym.staged.syntax import GENERIC, Program, StagedError
from ascend_gym.suite.skeleton import Interface, Parameter

DTYPES = {
    DType.FLOAT32: "f32",
    DType.FLOAT16: "f16",
    DType.INT32: "i32",
    DType.UINT8: "u8",
    DType.BOOL: "u8",
}
"""Element types of the language by those of cases."""


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


_SAID = {"gm": "inputs", "out": "outputs"}


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
