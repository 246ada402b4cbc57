"""Reads a specification out of the comment of a skeleton's kernel, as a language model would have to."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.ascend_craft.synthesis.graph import NotCoveredError
from agents.ascend_craft.synthesis.tracing import TensorShape
from agents.ascend_craft.synthesis.writer import Tensors
from ascend_gym.core.records import OpSpec
from ascend_gym.staged.hosting import DTYPES
from ascend_gym.staged.syntax import GENERIC

_TENSOR = re.compile(r"^(input|output) (\w+)\[(.*)\], (.+)$", re.M)
_REFERENCE = "Reference in numpy:"


@dataclass(frozen=True)
class Specified:
    """What a specification says.

    Attributes:
        tensors: inputs and outputs with symbolic shapes, and types.
        reference: text of the numpy reference.
    """

    tensors: Tensors
    reference: str


def read_specification(spec: OpSpec) -> Specified:
    """Return what the comment of the skeleton says, with sizes and types of the public cases.

    Raises:
        NotCoveredError: there is none, or it has types that the rules do not know.
    """
    comment = comment_of(spec)
    if _REFERENCE not in comment:
        raise NotCoveredError("an operator that has sources: there is no specification")
    head, _, reference = comment.partition(_REFERENCE)
    case = spec.cases[0]
    shapes = {tensor.name: tensor.shapes[0] for tensor in (*case.inputs, *case.outputs)}
    found: dict[str, list[TensorShape]] = {"input": [], "output": []}
    for kind, name, extents, _ in _TENSOR.findall(head):
        texts = tuple(each.strip() for each in extents.split(",") if each.strip())
        found[kind].append(TensorShape(name, texts, shapes[name]))
    attributes = {
        name: "f32" if isinstance(value, float) else "i32" for name, value in case.attributes.items()
    }
    return Specified(Tensors(found["input"], found["output"], _dtypes(spec), attributes), reference)


def comment_of(spec: OpSpec) -> str:
    """Return the comment in the kernel of a skeleton."""
    lines = spec.baseline.kernel_text.splitlines()
    return "\n".join(line[3:] for line in lines if line.startswith("//"))


def _dtypes(spec: OpSpec) -> dict[str, str]:
    """Return the type of each tensor in the language: ``T`` where it differs from case to case."""
    seen: dict[str, set[str]] = {}
    for case in spec.cases:
        for tensor in (*case.inputs, *case.outputs):
            if tensor.dtype not in DTYPES:
                raise NotCoveredError(f"{tensor.dtype.value} tensors")
            seen.setdefault(tensor.name, set()).add(DTYPES[tensor.dtype])
    return {name: types.pop() if len(types) == 1 else GENERIC for name, types in seen.items()}
