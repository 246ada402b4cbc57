"""Executes a verified program in numpy, and finds what a compiler would not.

Every access is bounded, buffers and workspace begin as poison, outputs and workspace know which core wrote
them. Cores run one after another from one ``sync_all`` to the next, so that nothing depends on luck.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_gym.core.records import Case
from ascend_gym.staged.hosting import Launch
from ascend_gym.staged.operations import MASK, OPERATIONS, SCALAR, WHOLE_BYTES
from ascend_gym.staged.scalars import Env, Value, compiled
from ascend_gym.staged.syntax import (
    BLOCK_BYTES,
    SIZES_BYTES,
    Assign,
    If,
    Loop,
    Op,
    Share,
    Stage,
    StagedError,
    Stmt,
    SyncAll,
    Tiles,
    Transfer,
    View,
    Write,
    walk,
)
from ascend_gym.staged.verify import Verified

Array = NDArray[Any]

_NUMPY = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u8": np.uint8}
_MAX_STEPS = 20_000_000


@dataclass
class _Global:
    """A tensor in global memory: flat values, who wrote each element, and when."""

    data: Array
    writer: Array | None = None
    epoch: Array | None = None


@dataclass
class _Local:
    """A buffer: values, and which of them something was written to."""

    data: Array
    written: NDArray[np.bool_]


@dataclass
class _Core:
    """What one core has."""

    number: int
    env: Env
    buffers: dict[str, _Local] = field(default_factory=dict)


Step = Callable[[_Core], None]


def interpret(verified: Verified, case: Case, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of a program for a case, in order.

    Args:
        verified: the program, verified for this case.
        case: the case.
        inputs: one array for each input.

    Raises:
        StagedError: the program leaves a tensor or buffer, reads what nobody wrote, lets two cores write one
            element, reads what another core wrote without ``sync_all``, or leaves an output unwritten.
    """
    return _Machine(verified, case, inputs).run()


class _Machine:
    """The state of one run."""

    def __init__(self, verified: Verified, case: Case, inputs: Sequence[Array]) -> None:
        self._program, self._case = verified.program, case
        self._launch: Launch = verified.launches[case.case_id]
        self._roles = verified.lifetimes.roles
        self._epoch, self._steps = 0, 0
        self._globals = self._tensors(inputs)
        self._functions: dict[str, Callable[..., Any]] = {
            "core": lambda node: lambda env: env["core()"],
            "cores": lambda node: lambda env: self._launch.cores,
            "read": self._read,
        }
        self._core = _Core(0, {})

    def run(self) -> list[Array]:
        """Run every core from one meeting to the next, and return the outputs."""
        cores = [self._new_core(number) for number in range(self._launch.cores)]
        segments: list[list[Step]] = [[]]
        for statement in self._program.body:
            if isinstance(statement, SyncAll):
                segments.append([])
            else:
                segments[-1].append(self._step(statement))
        with np.errstate(all="ignore"):
            for segment in segments:
                for core in cores:
                    self._core = core
                    for step in segment:
                        step(core)
                self._epoch += 1
        return self._outputs()

    def _tensors(self, inputs: Sequence[Array]) -> dict[str, _Global]:
        found: dict[str, _Global] = {}
        given = iter(inputs)
        shapes = {each.name: each.shapes[0] for each in self._case.outputs}
        for tensor in self._program.tensors:
            dtype = _NUMPY[self._launch.dtypes[tensor.name]]
            if tensor.role == "gm":
                found[tensor.name] = _Global(np.ascontiguousarray(next(given)).reshape(-1).view(dtype))
                continue
            size = self._launch.workspace if tensor.role == "work" else int(np.prod(shapes[tensor.name]))
            writer = np.full(size, -1, np.int16)
            epoch = np.full(size, -1, np.int16) if tensor.role == "work" else None
            found[tensor.name] = _Global(np.zeros(size, dtype), writer, epoch)
        return found

    def _new_core(self, number: int) -> _Core:
        core = _Core(number, {**self._launch.numbers, "core()": number})
        for name, elems in self._launch.elems.items():
            dtype = _NUMPY[self._launch.dtypes[name]]
            core.buffers[name] = _Local(np.zeros(elems, dtype), np.zeros(elems, np.bool_))
        return core

    def _outputs(self) -> list[Array]:
        outputs = []
        for tensor in self._case.outputs:
            held = self._globals[tensor.name]
            assert held.writer is not None
            missing = np.flatnonzero(held.writer < 0)
            if missing.size:
                raise StagedError(
                    0,
                    f"case {self._case.case_id}: {missing.size} of {held.data.size} elements of "
                    f"{tensor.name} are never written, first {missing[0]}; are remainders of rows, tiles "
                    "and cores stored?",
                )
            outputs.append(held.data.reshape(tensor.shapes[0]))
        return outputs

    def _fault(self, line: int, problem: str) -> StagedError:
        core = self._core
        numbers = ", ".join(f"{name}={value}" for name, value in core.env.items() if "(" not in name)
        return StagedError(line, f"case {self._case.case_id}, core {core.number}: {problem} ({numbers})")

    def _value(self, node: ast.expr) -> Value:
        return compiled(node, self._functions)

    def _read(self, node: ast.Call) -> Value:
        assert isinstance(node.args[0], ast.Name)
        name, index, line = node.args[0].id, self._value(node.args[1]), node.lineno

        def value(env: Env) -> Any:
            buffer, at = self._core.buffers[name], index(env)
            if not 0 <= at < buffer.data.size:
                raise self._fault(line, f"read({name}, {at}): it has {buffer.data.size} elements")
            if not buffer.written[at]:
                raise self._fault(line, f"read({name}, {at}): nothing was written there")
            element = buffer.data[at]
            return int(element) if element.dtype.kind in "iu" else np.float32(element)

        return value

    def _block(self, body: Sequence[Stmt]) -> list[Step]:
        return [self._step(each) for each in body]

    def _step(self, statement: Stmt) -> Step:
        """Return what executes a statement."""
        makers: dict[type, Callable[[Any], Step]] = {
            Assign: self._assign,
            Share: self._share,
            Transfer: self._transfer,
            Op: self._op,
            Write: self._write,
            Stage: self._stage,
            Tiles: self._tiles,
            Loop: self._loop,
            If: self._if,
        }
        return makers[type(statement)](statement)

    def _assign(self, statement: Assign) -> Step:
        name, value = statement.name, self._value(statement.value)

        def step(core: _Core) -> None:
            core.env[name] = value(core.env)

        return step

    def _share(self, statement: Share) -> Step:
        total = self._value(statement.total)
        grain = self._value(statement.grain) if statement.grain is not None else None

        def step(core: _Core) -> None:
            whole, unit = total(core.env), 1 if grain is None else grain(core.env)
            if whole < 0 or unit < 1:
                raise self._fault(statement.line, f"share({whole}, {unit}): expected at least 0 and 1")
            grains = -(-whole // unit)
            base, rest = divmod(grains, self._launch.cores)
            first = min((core.number * base + min(core.number, rest)) * unit, whole)
            last = min(first + (base + (core.number < rest)) * unit, whole)
            core.env[statement.first], core.env[statement.count] = first, last - first

        return step

    def _tiles(self, statement: Tiles) -> Step:
        total, tile, body = (
            self._value(statement.total),
            self._value(statement.tile),
            self._block(statement.body),
        )

        def step(core: _Core) -> None:
            whole, size = total(core.env), tile(core.env)
            if size < 1:
                raise self._fault(statement.line, f"tiles of {size} elements")
            for at in range(0, whole, size):
                core.env[statement.offset], core.env[statement.count] = at, min(size, whole - at)
                self._run(body, core)

        return step

    def _loop(self, statement: Loop) -> Step:
        start, stop, body = (
            self._value(statement.start),
            self._value(statement.stop),
            self._block(statement.body),
        )

        def step(core: _Core) -> None:
            for number in range(start(core.env), stop(core.env)):
                core.env[statement.name] = number
                self._run(body, core)

        return step

    def _if(self, statement: If) -> Step:
        test, body, orelse = (
            self._value(statement.test),
            self._block(statement.body),
            self._block(statement.orelse),
        )

        def step(core: _Core) -> None:
            self._run(body if test(core.env) else orelse, core)

        return step

    def _run(self, body: Sequence[Step], core: _Core) -> None:
        self._steps += 1 + len(body)
        if self._steps > _MAX_STEPS:
            raise self._fault(0, f"more than {_MAX_STEPS} steps: use longer tiles")
        for step in body:
            step(core)

    def _stage(self, statement: Stage) -> Step:
        body = self._block(statement.body)
        copied = sorted({s.local.buffer for s in walk([statement]) if isinstance(s, Transfer)})

        def step(core: _Core) -> None:
            if statement.kind == "copyin":
                _forget(core, copied)
            self._run(body, core)
            if statement.kind == "copyout":
                _forget(core, copied)

        return step

    def _view(self, view: View) -> Callable[[_Core, int, int], tuple[_Local, slice]]:
        """Return what gives the buffer and the part of it that an instruction uses."""
        offset = self._value(view.offset) if view.offset is not None else None
        name = view.buffer

        def part(core: _Core, count: int, line: int) -> tuple[_Local, slice]:
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

    def _transfer(self, transfer: Transfer) -> Step:
        at, count = self._value(transfer.at), self._value(transfer.count)
        rows = self._value(transfer.rows) if transfer.rows is not None else None
        pitch = self._value(transfer.pitch) if transfer.pitch is not None else None
        part, line, name = self._view(transfer.local), transfer.line, transfer.tensor
        per_block = BLOCK_BYTES // SIZES_BYTES[self._launch.dtypes[name]]

        def step(core: _Core) -> None:
            begin, length = at(core.env), count(core.env)
            number, far = (1, 0) if rows is None or pitch is None else (rows(core.env), pitch(core.env))
            near = -(-length // per_block) * per_block
            if length < 1 or not 1 <= number <= 4095 or (number > 1 and far < length):
                raise self._fault(
                    line, f"a copy of {number} rows of {length} elements, {far} from row to row"
                )
            held = self._globals[name]
            end = begin + (number - 1) * far + length
            if begin < 0 or end > held.data.size:
                raise self._fault(line, f"{name} from {begin} to {end}: it has {held.data.size} elements")
            buffer, area = part(core, (number - 1) * near + length, line)
            for row in range(number):
                there = slice(begin + row * far, begin + row * far + length)
                here = slice(area.start + row * near, area.start + row * near + length)
                if transfer.stores:
                    self._put(core, held, there, buffer, here, line, name)
                else:
                    self._get(core, held, there, buffer, here, line, name)

        return step

    def _get(
        self, core: _Core, held: _Global, there: slice, buffer: _Local, here: slice, line: int, name: str
    ) -> None:
        if held.writer is not None and held.epoch is not None:
            writers, epochs = held.writer[there], held.epoch[there]
            if (writers < 0).any():
                raise self._fault(line, f"{name} from {there.start} on: nobody wrote all of it")
            if ((writers != core.number) & (epochs == self._epoch)).any():
                raise self._fault(
                    line, f"{name} from {there.start} on: another core wrote it; sync_all() first"
                )
        buffer.data[here] = held.data[there]
        buffer.written[here] = True

    def _put(
        self, core: _Core, held: _Global, there: slice, buffer: _Local, here: slice, line: int, name: str
    ) -> None:
        assert held.writer is not None
        if not buffer.written[here].all():
            raise self._fault(line, f"store to {name}: part of the buffer was never written")
        writers = held.writer[there]
        others = (writers >= 0) & (writers != core.number)
        if held.epoch is not None:
            others &= held.epoch[there] == self._epoch
        if others.any():
            first = there.start + int(np.flatnonzero(others)[0])
            raise self._fault(line, f"{name}[{first}] is written by core {held.writer[first]} as well")
        held.data[there] = buffer.data[here]
        writers[:] = core.number
        if held.epoch is not None:
            held.epoch[there] = self._epoch

    def _write(self, statement: Write) -> Step:
        index, value, name = self._value(statement.index), self._value(statement.value), statement.buffer

        def step(core: _Core) -> None:
            buffer, at = core.buffers[name], index(core.env)
            if not 0 <= at < buffer.data.size:
                raise self._fault(statement.line, f"write({name}, {at}): it has {buffer.data.size} elements")
            buffer.data[at] = value(core.env)
            buffer.written[at] = True

        return step

    def _op(self, op: Op) -> Step:
        operation = OPERATIONS[op.name]
        count, target = self._value(op.count), self._view(op.dst)
        operands: list[tuple[str, Any]] = [
            (kind, self._view(each) if isinstance(each, View) else self._value(each))
            for kind, each in zip(operation.operands, op.operands, strict=True)
        ]
        compute = _special(self, op) or _plain(op)
        checks_last = op.name.startswith("reduce_")

        def step(core: _Core) -> None:
            n = count(core.env)
            if n < 1:
                raise self._fault(op.line, f"{op.name} of {n} elements")
            buffer, area = self._target(op, target, core, n)
            values: list[Any] = []
            for position, (kind, operand) in enumerate(operands):
                if kind == SCALAR:
                    values.append(operand(core.env))
                    continue
                room = _work_elems(n) if checks_last and position == 1 else n
                if operation.whole or kind == MASK:
                    room = self._whole(op, position, n)
                source, where = operand(core, room, op.line)
                values.append(self._source(op, source, where, n, position, checks_last))
            if operation.accumulates:
                if not buffer.written[area].all():
                    raise self._fault(op.line, f"{op.name} adds to {op.dst.buffer}: it was never written")
                values.append(buffer.data[area])
            buffer.data[area] = compute(values, buffer.data.dtype, n)
            buffer.written[area] = True

        return step

    def _target(self, op: Op, target: Any, core: _Core, n: int) -> tuple[_Local, slice]:
        """Return the buffer that an instruction writes, and what of it."""
        operation = OPERATIONS[op.name]
        if operation.writes is not None:
            return target(core, operation.writes, op.line)  # type: ignore[no-any-return]
        if op.name.startswith("compare"):
            whole = self._whole_elems(op.operands[0], n)
            buffer, area = target(core, -(-whole // 8), op.line)
            return buffer, slice(area.start, area.start + -(-n // 8))
        if operation.whole:
            target(core, self._whole_elems(op.dst, n), op.line)
        return target(core, n, op.line)  # type: ignore[no-any-return]

    def _whole(self, op: Op, position: int, n: int) -> int:
        operand = op.operands[position]
        if OPERATIONS[op.name].operands[position] == MASK:
            return -(-self._whole_elems(op.dst, n) // 8)
        return self._whole_elems(operand, n)

    def _whole_elems(self, operand: Any, n: int) -> int:
        """Return ``n`` rounded up to whole repeats of an operand's type."""
        lanes = WHOLE_BYTES // SIZES_BYTES[self._launch.dtypes[operand.buffer]]
        return -(-n // lanes) * lanes

    def _source(self, op: Op, buffer: _Local, where: slice, n: int, position: int, reduces: bool) -> Array:
        kind = OPERATIONS[op.name].operands[position]
        used = -(-n // 8) if kind == MASK else n
        area = slice(where.start, where.start + used)
        if op.name == "gather" and position == 0:
            return buffer.data  # bounds are those of its offsets
        if not (reduces and position == 1) and not buffer.written[area].all():
            view = op.operands[position]
            assert isinstance(view, View)
            raise self._fault(
                op.line, f"{op.name} reads {view.buffer}[{area.start}:{area.stop}]: never written"
            )
        if kind == MASK:
            return np.unpackbits(buffer.data[area], bitorder="little")[:n].astype(np.bool_)
        return buffer.data[area]


def _forget(core: _Core, names: Sequence[str]) -> None:
    """Leave poison where a tensor was freed or not filled yet."""
    for name in names:
        core.buffers[name].written[:] = False


def _work_elems(n: int) -> int:
    """Return the elements that a reduction needs to work with."""
    return n // 4 + 128


def _plain(op: Op) -> Callable[[list[Any], Any, int], Any]:
    operation = OPERATIONS[op.name]
    kinds = operation.operands

    def compute(values: list[Any], dtype: Any, n: int) -> Any:
        typed = [dtype.type(v) if k == SCALAR else v for k, v in zip(kinds, values, strict=False)]
        return operation.meaning(*typed, *values[len(kinds) :])

    return compute


def _special(machine: _Machine, op: Op) -> Callable[[list[Any], Any, int], Any] | None:
    """Return what computes the instructions whose meaning is more than a function of their operands."""
    if op.name == "gather":
        return lambda values, dtype, n: _gather(machine, op, values, dtype)
    if op.name == "arange":
        return lambda values, dtype, n: np.arange(values[0], values[0] + n, dtype=dtype)
    if op.name == "cast":
        return lambda values, dtype, n: np.trunc(values[0]) if dtype.kind == "i" else values[0]
    if op.name.startswith("compare"):
        meaning = OPERATIONS[op.name].meaning
        scalar = op.name.startswith("compares")
        return lambda values, dtype, n: np.packbits(
            meaning(values[0], values[0].dtype.type(values[1]) if scalar else values[1]), bitorder="little"
        )
    return None


def _gather(machine: _Machine, op: Op, values: list[Any], dtype: Any) -> Any:
    data, offsets, base = values
    at = offsets.astype(np.int64) + int(base)
    if (at % dtype.itemsize).any() or at.min() < 0 or at.max() // dtype.itemsize >= data.size:
        problem = (
            f"gather from byte {at.min()} to {at.max()}: the buffer has {data.size * dtype.itemsize} bytes"
        )
        raise machine._fault(op.line, problem)
    index = at // dtype.itemsize
    view = op.operands[0]
    assert isinstance(view, View)
    if not machine._core.buffers[view.buffer].written[index].all():
        raise machine._fault(op.line, f"gather reads elements of {view.buffer} that were never written")
    return data[index]
