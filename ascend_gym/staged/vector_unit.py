"""Instructions of the vector unit as the interpreter executes them: bounded, and on nothing unwritten."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_gym.staged.operations import MASK, OPERATIONS, SCALAR, WHOLE_BYTES
from ascend_gym.staged.scalars import Env, Value
from ascend_gym.staged.syntax import BLOCK_BYTES, SIZES_BYTES, BufferView, Op, StagedError

Array = NDArray[Any]


@dataclass
class Buffer:
    """A buffer: values, and which of them something was written to."""

    data: Array
    written: NDArray[np.bool_]


@dataclass
class Core:
    """What one core has."""

    number: int
    env: Env
    buffers: dict[str, Buffer] = field(default_factory=dict)


Step = Callable[[Core], None]
Part = Callable[[Core, int, int], tuple[Buffer, slice]]  # core, elements, line
_Compute = Callable[[Core, list[Any], Any, int], Any]  # core, operands, type of dst, elements


class VectorUnit:
    """Makes steps of instructions.

    Args:
        dtypes: element type of each buffer by name.
        value: compiles a scalar expression.
        fault: makes the error of a line of the program.
    """

    def __init__(
        self,
        dtypes: Mapping[str, str],
        value: Callable[[ast.expr], Value],
        fault: Callable[[int, str], StagedError],
    ) -> None:
        self._dtypes, self._value, self._fault = dtypes, value, fault

    def view(self, view: BufferView) -> Part:
        """Return what gives the buffer and the part of it that an instruction uses."""
        offset = self._value(view.offset) if view.offset is not None else None
        name = view.buffer

        def part(core: Core, count: int, line: int) -> tuple[Buffer, slice]:
            buffer = core.buffers[name]
            begin = 0 if offset is None else offset(core.env)
            if begin * buffer.data.itemsize % BLOCK_BYTES:
                raise self._fault(line, f"{name}[{begin}] is not on a boundary of {BLOCK_BYTES} bytes")
            if begin < 0 or begin + count > buffer.data.size:
                raise self._fault(
                    line, f"{count} elements of {name} from {begin} on: it has {buffer.data.size} elements"
                )
            return buffer, slice(begin, begin + count)

        return part

    def step(self, op: Op) -> Step:
        """Return what executes an instruction."""
        operation = OPERATIONS[op.name]
        count, target = self._value(op.count), self.view(op.dst)
        operands: list[tuple[str, Any]] = [
            (kind, self.view(each) if isinstance(each, BufferView) else self._value(each))
            for kind, each in zip(operation.operands, op.operands, strict=True)
        ]
        compute = self._special(op) or _plain(op)

        def step(core: Core) -> None:
            n = count(core.env)
            if n < 1 or n % operation.unit:
                wanted = f"; expected a multiple of {operation.unit}" if operation.unit > 1 else ""
                raise self._fault(op.line, f"{op.name} of {n} elements{wanted}")
            buffer, area = self._target(op, target, core, n)
            values: list[Any] = []
            for position, (kind, operand) in enumerate(operands):
                if kind == SCALAR:
                    values.append(operand(core.env))
                    continue
                room = _work_elems(n) if operation.reduces and position == 1 else n
                if operation.unit > 1:
                    room = 0
                if operation.whole or kind == MASK:
                    room = self._whole(op, position, n)
                source, where = operand(core, room, op.line)
                values.append(self._source(op, source, where, n, position))
            if operation.accumulates:
                if not buffer.written[area].all():
                    raise self._fault(op.line, f"{op.name} adds to {op.dst.buffer}: it was never written")
                values.append(buffer.data[area])
            buffer.data[area] = compute(core, values, buffer.data.dtype, n)
            buffer.written[area] = True

        return step

    def _target(self, op: Op, target: Part, core: Core, n: int) -> tuple[Buffer, slice]:
        """Return the buffer that an instruction writes, and what of it."""
        operation = OPERATIONS[op.name]
        if operation.writes is not None:
            return target(core, operation.writes, op.line)
        if operation.bits:
            whole = self._whole_elems(op.operands[0], n)
            buffer, area = target(core, -(-whole // 8), op.line)
            return buffer, slice(area.start, area.start + -(-n // 8))
        if operation.whole:
            target(core, self._whole_elems(op.dst, n), op.line)
        return target(core, n, op.line)

    def _whole(self, op: Op, position: int, n: int) -> int:
        operand = op.operands[position]
        if OPERATIONS[op.name].operands[position] == MASK:
            return -(-self._whole_elems(op.dst, n) // 8)
        return self._whole_elems(operand, n)

    def _whole_elems(self, operand: Any, n: int) -> int:
        """Return ``n`` rounded up to whole repeats of an operand's type."""
        lanes = WHOLE_BYTES // SIZES_BYTES[self._dtypes[operand.buffer]]
        return -(-n // lanes) * lanes

    def _source(self, op: Op, buffer: Buffer, where: slice, n: int, position: int) -> Array:
        operation = OPERATIONS[op.name]
        kind = operation.operands[position]
        used = -(-n // 8) if kind == MASK else n
        area = slice(where.start, where.start + used)
        if op.name == "gather" and position == 0:
            return buffer.data  # bounds are those of its offsets
        if operation.unit > 1:
            return np.array([where.start])  # of what it reads, see _transposed
        if not (operation.reduces and position == 1) and not buffer.written[area].all():
            view = op.operands[position]
            assert isinstance(view, BufferView)
            raise self._fault(
                op.line, f"{op.name} reads {view.buffer}[{area.start}:{area.stop}]: never written"
            )
        if kind == MASK:
            return np.unpackbits(buffer.data[area], bitorder="little")[:n].astype(np.bool_)
        return buffer.data[area]

    def _special(self, op: Op) -> _Compute | None:
        """Return what computes the instructions whose meaning is more than a function of their operands."""
        operation = OPERATIONS[op.name]
        if op.name == "gather":
            return lambda core, values, dtype, n: self._gathered(core, op, values, dtype)
        if operation.unit > 1:
            return lambda core, values, dtype, n: self._transposed(core, op, values, n)
        if op.name == "arange":
            return lambda core, values, dtype, n: np.arange(values[0], values[0] + n, dtype=dtype)
        if op.name == "cast":
            return lambda core, values, dtype, n: np.trunc(values[0]) if dtype.kind == "i" else values[0]
        if operation.bits:
            return lambda core, values, dtype, n: np.packbits(
                operation.meaning(values[0], _typed(values[1], values[0].dtype)), bitorder="little"
            )
        return None

    def _gathered(self, core: Core, op: Op, values: list[Any], dtype: Any) -> Any:
        data, offsets, base = values
        at = offsets.astype(np.int64) + int(base)
        if (at % dtype.itemsize).any() or at.min() < 0 or at.max() // dtype.itemsize >= data.size:
            size_bytes = data.size * dtype.itemsize
            raise self._fault(
                op.line, f"gather from byte {at.min()} to {at.max()}: the buffer has {size_bytes} bytes"
            )
        index = at // dtype.itemsize
        view = op.operands[0]
        assert isinstance(view, BufferView)
        if not core.buffers[view.buffer].written[index].all():
            raise self._fault(op.line, f"gather reads elements of {view.buffer} that were never written")
        return data[index]

    def _transposed(self, core: Core, op: Op, values: list[Any], n: int) -> Any:
        """Return 16 rows as columns of 16, or the other way round."""
        (first,), distance, *given = values
        rows, columns = np.arange(16)[:, None], np.arange(n // 16)[None, :]
        if op.name == "rows_to_lanes":
            index = (first + np.minimum(rows, given[0] - 1) * distance + columns).T
        else:
            index = first + columns * (16 * distance) + rows
        view = op.operands[0]
        assert isinstance(view, BufferView)
        buffer = core.buffers[view.buffer]
        whole = 8 if op.name == "rows_to_lanes" else 1
        if distance < 1 or distance % whole or (given and not 1 <= given[0] <= 16):
            raise self._fault(
                op.line,
                f"{op.name} with {distance} {given}: 1 to 16 rows, which begin at blocks of 8 elements",
            )
        if index.max() >= buffer.data.size:
            raise self._fault(
                op.line, f"{op.name} reads up to element {index.max()} of {buffer.data.size} of {view.buffer}"
            )
        if not buffer.written[index].all():
            raise self._fault(op.line, f"{op.name} reads elements of {view.buffer} that were never written")
        return buffer.data[index].reshape(-1)


def _typed(operand: Any, dtype: Any) -> Any:
    """Return a number as one of a type; an array has one already."""
    return operand if isinstance(operand, np.ndarray) else dtype.type(operand)


def _work_elems(n: int) -> int:
    """Return the elements that a reduction needs to work with."""
    return n // 4 + 128


def _plain(op: Op) -> _Compute:
    operation = OPERATIONS[op.name]

    def compute(core: Core, values: list[Any], dtype: Any, n: int) -> Any:
        return operation.meaning(*(_typed(value, dtype) for value in values))

    return compute
