"""Executes a verified program in numpy, and finds what a compiler would not.

Every access is bounded, buffers and workspace begin as poison, outputs and workspace know which core wrote
them. Cores run one after another from one ``sync_all`` to the next, so that nothing depends on luck.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ascend_gym.core.records import Case
from ascend_gym.staged.global_memory import NUMPY_TYPES, Array, GlobalMemory
from ascend_gym.staged.hosting import StagedLaunch
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
    Write,
    walk,
)
from ascend_gym.staged.vector_unit import Buffer, Core, Step, VectorUnit
from ascend_gym.staged.verify import Verified

_MAX_STEPS = 20_000_000


def interpret(verified: Verified, case: Case, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of a program for a case, in order, with the shapes that the case declares.

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
        self._launch: StagedLaunch = verified.launches[case.case_id]
        self._roles = verified.lifetimes.roles
        self._steps = 0
        self._memory = GlobalMemory(self._program, case, self._launch, inputs, self._fault)
        self._functions: dict[str, Callable[..., Any]] = {
            "core": lambda node: lambda env: env["core()"],
            "cores": lambda node: lambda env: self._launch.cores,
            "read": self._read,
        }
        self._core = Core(0, {})
        self._vector_unit = VectorUnit(self._launch.dtypes, self._value, self._fault)

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
                self._memory.epoch += 1
        return self._memory.outputs()

    def _new_core(self, number: int) -> Core:
        core = Core(number, {**self._launch.numbers, "core()": number})
        for name, elems in self._launch.elems.items():
            dtype = NUMPY_TYPES[self._launch.dtypes[name]]
            core.buffers[name] = Buffer(np.zeros(elems, dtype), np.zeros(elems, np.bool_))
        return core

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
            Op: self._vector_unit.step,
            Write: self._write,
            Stage: self._stage,
            Tiles: self._tiles,
            Loop: self._loop,
            If: self._if,
        }
        return makers[type(statement)](statement)

    def _assign(self, statement: Assign) -> Step:
        name, value = statement.name, self._value(statement.value)

        def step(core: Core) -> None:
            core.env[name] = value(core.env)

        return step

    def _share(self, statement: Share) -> Step:
        total = self._value(statement.total)
        grain = self._value(statement.grain) if statement.grain is not None else None

        def step(core: Core) -> None:
            whole, unit = total(core.env), 1 if grain is None else grain(core.env)
            if whole < 0 or unit < 1:
                raise self._fault(statement.line, f"share({whole}, {unit}): expected at least 0 and 1")
            grains = -(-whole // unit)
            part = -(-grains // self._launch.cores) * unit
            first = min(core.number * part, whole)
            core.env[statement.first], core.env[statement.count] = first, min(part, whole - first)

        return step

    def _tiles(self, statement: Tiles) -> Step:
        total, tile, body = (
            self._value(statement.total),
            self._value(statement.tile),
            self._block(statement.body),
        )

        def step(core: Core) -> None:
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

        def step(core: Core) -> None:
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

        def step(core: Core) -> None:
            self._run(body if test(core.env) else orelse, core)

        return step

    def _run(self, body: Sequence[Step], core: Core) -> None:
        self._steps += 1 + len(body)
        if self._steps > _MAX_STEPS:
            raise self._fault(0, f"more than {_MAX_STEPS} steps: use longer tiles")
        for step in body:
            step(core)

    def _stage(self, statement: Stage) -> Step:
        body = self._block(statement.body)
        copied = sorted({s.local.buffer for s in walk([statement]) if isinstance(s, Transfer)})

        def step(core: Core) -> None:
            if statement.kind == "copyin":
                _forget(core, copied)
            self._run(body, core)
            if statement.kind == "copyout":
                _forget(core, copied)

        return step

    def _transfer(self, transfer: Transfer) -> Step:
        at, count = self._value(transfer.at), self._value(transfer.count)
        rows = self._value(transfer.rows) if transfer.rows is not None else None
        pitch = self._value(transfer.pitch) if transfer.pitch is not None else None
        pad = self._value(transfer.pad) if transfer.pad is not None else None
        room = self._value(transfer.room) if transfer.room is not None else None
        part, line, name = self._vector_unit.view(transfer.local), transfer.line, transfer.tensor
        per_block = BLOCK_BYTES // SIZES_BYTES[self._launch.dtypes[name]]

        def step(core: Core) -> None:
            begin, length = at(core.env), count(core.env)
            number, far = (1, 0) if rows is None or pitch is None else (rows(core.env), pitch(core.env))
            padded = -(-length // per_block) * per_block
            near = padded if room is None else room(core.env)
            if near % per_block or near < padded:
                raise self._fault(line, f"room={near} for rows of {length} elements in the buffer")
            if length < 1 or not 1 <= number <= 4095 or (number > 1 and far < length):
                raise self._fault(
                    line, f"a copy of {number} rows of {length} elements, {far} from row to row"
                )
            self._memory.check(name, begin, begin + (number - 1) * far + length, line)
            last = length if pad is None else padded
            buffer, area = part(core, (number - 1) * near + last, line)
            for row in range(number):
                if pad is not None:
                    rest = slice(area.start + row * near + length, area.start + row * near + padded)
                    buffer.data[rest], buffer.written[rest] = pad(core.env), True
                there = slice(begin + row * far, begin + row * far + length)
                here = slice(area.start + row * near, area.start + row * near + length)
                move = self._memory.put if transfer.stores else self._memory.get
                move(core, name, there, buffer, here, line)

        return step

    def _write(self, statement: Write) -> Step:
        index, value, name = self._value(statement.index), self._value(statement.value), statement.buffer

        def step(core: Core) -> None:
            buffer, at = core.buffers[name], index(core.env)
            if not 0 <= at < buffer.data.size:
                raise self._fault(statement.line, f"write({name}, {at}): it has {buffer.data.size} elements")
            buffer.data[at] = value(core.env)
            buffer.written[at] = True

        return step


def _forget(core: Core, names: Sequence[str]) -> None:
    """Leave poison where a tensor was freed or not filled yet."""
    for name in names:
        core.buffers[name].written[:] = False
