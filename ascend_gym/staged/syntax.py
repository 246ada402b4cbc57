"""What a program of the staged language consists of: data only.

Scalar expressions stay nodes of Python's own syntax tree; ``parse`` has checked that nothing else than the
language allows is in them. Nobody changes them later, so that what is asked of them often is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from ascend_gym.core.errors import MisuseError

BLOCK_BYTES = 32

SIZES_BYTES = {"f32": 4, "f16": 2, "i32": 4, "u8": 1}
"""Element types of tensors and buffers by name; ``T`` stands for the type of the first tensor."""

GENERIC = "T"


class StagedError(MisuseError):
    """A program breaks a rule of the language.

    Attributes:
        line: one-based line of the program, 0 where none is to blame.
        problem: what was expected, what came, what to do.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.line, self.problem = line, problem


@dataclass(frozen=True)
class Tensor:
    """A parameter in global memory. ``role`` is ``gm`` (input), ``out`` (output) or ``work`` (workspace)."""

    name: str
    role: str
    dtype: str


@dataclass(frozen=True)
class Scalar:
    """A number that the host hands to the kernel, or an attribute of the operator; ``i32`` or ``f32``."""

    name: str
    dtype: str


@dataclass(frozen=True)
class Alloc:
    """A buffer of the unified buffer: ``name = alloc_ub(elems, dtype)``."""

    name: str
    elems: ast.expr
    dtype: str
    line: int

    @property
    def is_float(self) -> bool:
        """Whether its elements are floats."""
        return self.dtype not in ("i32", "u8")


@dataclass(frozen=True)
class BufferView:
    """A buffer from an element on; the element must lie on a boundary of 32 bytes."""

    buffer: str
    offset: ast.expr | None = None


@dataclass(frozen=True)
class Assign:
    """``name = expr``, in and out of stages."""

    name: str
    value: ast.expr
    line: int


@dataclass(frozen=True)
class Share:
    """``first, count = share(total, grain)``: this core's part, in whole grains but for the last."""

    first: str
    count: str
    total: ast.expr
    grain: ast.expr | None
    line: int


@dataclass(frozen=True)
class Transfer:
    """``load(B, x[at], n, rows, pitch)`` or ``store(y[at], B, n, rows, pitch)``.

    Attributes:
        stores: whether it goes to global memory.
        local: the buffer side; each row begins at the next boundary of 32 bytes.
        tensor: name of the tensor.
        at: first element of the tensor.
        count: elements of a row.
        rows: number of rows; ``None`` for one.
        pitch: elements from row to row in global memory.
        line: where it stands.
        pad: what fills the rest of each row's last 32 bytes in the buffer; ``None`` for nothing.
        room: elements from row to row in the buffer, whole blocks of 32 bytes; ``None`` for the least.
    """

    stores: bool
    local: BufferView
    tensor: str
    at: ast.expr
    count: ast.expr
    rows: ast.expr | None
    pitch: ast.expr | None
    line: int
    pad: ast.expr | None = None
    room: ast.expr | None = None


@dataclass(frozen=True)
class Op:
    """A vector instruction: ``name(dst, operands.., n)``."""

    name: str
    dst: BufferView
    operands: tuple[BufferView | ast.expr, ...]
    count: ast.expr
    line: int

    @property
    def sources(self) -> list[BufferView]:
        """The buffers that it reads, by what its operands are."""
        return [each for each in self.operands if isinstance(each, BufferView)]


@dataclass(frozen=True)
class Write:
    """``write(B, i, value)``: one element by the scalar unit."""

    buffer: str
    index: ast.expr
    value: ast.expr
    line: int


@dataclass(frozen=True)
class Stage:
    """``with copyin():``, ``with compute():`` or ``with copyout():``."""

    kind: str
    body: list[Stmt]
    line: int


@dataclass(frozen=True)
class Tiles:
    """``for offset, count in tiles(total, tile):``; the last count is what is left."""

    offset: str
    count: str
    total: ast.expr
    tile: ast.expr
    body: list[Stmt]
    line: int


@dataclass(frozen=True)
class Loop:
    """``for name in range(start, stop):``."""

    name: str
    start: ast.expr
    stop: ast.expr
    body: list[Stmt]
    line: int


@dataclass(frozen=True)
class If:
    """``if test: .. else: ..``."""

    test: ast.expr
    body: list[Stmt]
    orelse: list[Stmt]
    line: int


@dataclass(frozen=True)
class SyncAll:
    """``sync_all()``: all cores meet."""

    line: int


Stmt: TypeAlias = Assign | Share | Transfer | Op | Write | Stage | Tiles | Loop | If | SyncAll


@dataclass(frozen=True)
class StagedKnob:
    """A constant of the host that a search may turn: ``knob("tile", 4096, [2048, 8192])``."""

    name: str
    default: int
    choices: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A parsed program.

    Attributes:
        tensors: parameters in global memory, in the order of the operator: inputs, outputs, workspace.
        scalars: what the kernel takes from the host, by name.
        attributes: attributes of the operator that the host takes.
        host: assignments of the host in order.
        cores: how many cores are launched.
        workspace: elements (f32) of workspace.
        allocs: buffers.
        body: statements of the kernel.
        knobs: knobs by name.
        text: the source.
    """

    tensors: tuple[Tensor, ...]
    scalars: tuple[Scalar, ...]
    attributes: tuple[Scalar, ...]
    host: tuple[Assign, ...]
    cores: ast.expr
    workspace: ast.expr | None
    allocs: tuple[Alloc, ...]
    body: list[Stmt]
    knobs: dict[str, StagedKnob] = field(default_factory=dict)
    text: str = ""

    def tensor(self, name: str) -> Tensor:
        """Return the tensor of that name."""
        return next(each for each in self.tensors if each.name == name)

    def alloc(self, name: str) -> Alloc:
        """Return the buffer of that name."""
        return next(each for each in self.allocs if each.name == name)

    @property
    def float_buffers(self) -> dict[str, bool]:
        """For each buffer, whether its elements are floats."""
        return {alloc.name: alloc.is_float for alloc in self.allocs}


def children(statement: Stmt) -> list[list[Stmt]]:
    """Return the statement lists directly below a statement."""
    if isinstance(statement, If):
        return [statement.body, statement.orelse]
    return [statement.body] if isinstance(statement, (Stage, Tiles, Loop)) else []


def walk(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield every statement below ``body``, parents first."""
    for statement in body:
        yield statement
        for inner in children(statement):
            yield from walk(inner)


def expressions(statement: Stmt) -> list[ast.expr]:
    """Return the scalar expressions of a statement itself."""
    found: list[ast.expr | None] = []
    if isinstance(statement, Assign):
        found = [statement.value]
    elif isinstance(statement, Share):
        found = [statement.total, statement.grain]
    elif isinstance(statement, Transfer):
        found = [statement.at, statement.count, statement.rows, statement.pitch, statement.local.offset]
        found += [statement.pad, statement.room]
    elif isinstance(statement, Op):
        scalars = [each for each in statement.operands if isinstance(each, ast.expr)]
        found = [
            *scalars,
            statement.count,
            statement.dst.offset,
            *(view.offset for view in statement.sources),
        ]
    elif isinstance(statement, Write):
        found = [statement.index, statement.value]
    elif isinstance(statement, Tiles):
        found = [statement.total, statement.tile]
    elif isinstance(statement, Loop):
        found = [statement.start, statement.stop]
    elif isinstance(statement, If):
        found = [statement.test]
    return [each for each in found if each is not None]


def assigned(statement: Stmt) -> list[str]:
    """Return the scalars that a statement itself gives a value."""
    if isinstance(statement, Assign):
        return [statement.name]
    if isinstance(statement, Share):
        return [statement.first, statement.count]
    if isinstance(statement, Tiles):
        return [statement.offset, statement.count]
    return [statement.name] if isinstance(statement, Loop) else []


@lru_cache(maxsize=4096)
def names_in(expression: ast.expr) -> frozenset[str]:
    """Return the names in an expression, those of functions left out."""
    nodes = list(ast.walk(expression))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in functions)


@lru_cache(maxsize=4096)
def reads_in(expression: ast.expr) -> tuple[ast.Call, ...]:
    """Return the ``read(B, i)`` in an expression."""
    return tuple(
        node
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "read"
    )


def buffers_in(statement: Stmt) -> set[str]:
    """Return the buffers that a statement itself touches."""
    named: set[str] = set()
    if isinstance(statement, Transfer):
        named.add(statement.local.buffer)
    elif isinstance(statement, Op):
        named |= {statement.dst.buffer, *(view.buffer for view in statement.sources)}
    elif isinstance(statement, Write):
        named.add(statement.buffer)
    for expression in expressions(statement):
        named |= {call.args[0].id for call in reads_in(expression) if isinstance(call.args[0], ast.Name)}
    return named


def touches(statement: Stmt, buffer: str) -> bool:
    """Say whether a statement or one below it touches a buffer."""
    return any(buffer in buffers_in(each) for each in walk([statement]))
