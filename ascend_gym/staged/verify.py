"""The verifier: everything that can be said of a program without running it, for every case."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ascend_gym.core.records import Case
from ascend_gym.staged.hosting import StagedLaunch, check_interface, depths_of, launch_of
from ascend_gym.staged.lifetimes import Lifetimes, lifetimes_of
from ascend_gym.staged.operations import OPERATIONS, OTHER
from ascend_gym.staged.scalars import is_float
from ascend_gym.staged.syntax import (
    GENERIC,
    Assign,
    BufferView,
    Loop,
    Op,
    Program,
    Share,
    StagedError,
    Stmt,
    SyncAll,
    Tiles,
    Transfer,
    Write,
    assigned,
    children,
    expressions,
    names_in,
    walk,
)
from ascend_gym.suite.skeleton import Interface

_CASTS = {
    ("f32", "f16"),
    ("f16", "f32"),
    ("f32", "i32"),
    ("i32", "f32"),
    ("f16", "u8"),
    ("T", "f32"),
    ("f32", "T"),
}


@dataclass(frozen=True)
class Verified:
    """A program that broke no rule.

    Attributes:
        program: the program.
        interface: the operator that it implements.
        lifetimes: roles and lifetimes of its buffers.
        depths: tensors of each queue.
        types: for each scalar of the kernel, whether it is a float.
        launches: what the host decides, by case id.
    """

    program: Program
    interface: Interface
    lifetimes: Lifetimes
    depths: Mapping[str, int]
    types: Mapping[str, bool]
    launches: Mapping[str, StagedLaunch]


def verify(program: Program, interface: Interface, cases: Sequence[Case]) -> Verified:
    """Check a program for the operator and cases that it is for.

    Raises:
        StagedError: it breaks a rule; the message says which, where, and what to do.
    """
    check_interface(program, interface)
    _check_tensors(program)
    _check_synchronisation(program)
    types = _types(program)
    lifetimes = lifetimes_of(program)
    dtypes = {each.name: each.dtype for each in program.tensors}
    dtypes |= {each.name: each.dtype for each in program.allocs}
    for statement in walk(program.body):
        _check_whole(statement, types, program.float_buffers)
        for expression in expressions(statement):
            _check_division(expression, types, program.float_buffers)
        if isinstance(statement, Op):
            _check_operation(statement, dtypes)
        elif isinstance(statement, Transfer):
            _check_transfer(statement, program, dtypes)
    launches = {case.case_id: launch_of(program, case) for case in cases}
    depths = depths_of(program, lifetimes, list(launches.values())) if program.allocs else {}
    return Verified(program, interface, lifetimes, depths, types, launches)


def _check_tensors(program: Program) -> None:
    loaded = {s.tensor for s in walk(program.body) if isinstance(s, Transfer) and not s.stores}
    stored = {s.tensor for s in walk(program.body) if isinstance(s, Transfer) and s.stores}
    for tensor in program.tensors:
        if tensor.role == "gm" and tensor.name not in loaded:
            raise StagedError(0, f"input {tensor.name} is never loaded")
        if tensor.role == "out" and tensor.name not in stored:
            raise StagedError(0, f"output {tensor.name} is never stored")
    if any(each.role == "work" for each in program.tensors) != (program.workspace is not None):
        raise StagedError(0, "a work tensor of the kernel goes with launch(.., workspace=elements)")


def _check_synchronisation(program: Program) -> None:
    top = {id(statement) for statement in program.body}
    for statement in walk(program.body):
        if isinstance(statement, SyncAll) and id(statement) not in top:
            raise StagedError(
                statement.line, "sync_all() stands at the top of the kernel: all cores must reach it"
            )


def _types(program: Program) -> dict[str, bool]:
    """Return for each scalar of the kernel whether it is a float; check that each name is one."""
    types = {each.name: each.dtype == "f32" for each in program.scalars}
    buffers = program.float_buffers
    known = set(types)
    statements = list(walk(program.body))
    for statement in statements:
        if isinstance(statement, (Loop, Tiles, Share)):
            types |= dict.fromkeys(assigned(statement), False)
        known |= set(assigned(statement))
    changed = True
    while changed:
        changed = False
        for each in statements:
            if isinstance(each, Assign) and not types.get(each.name) and is_float(each.value, types, buffers):
                types[each.name] = changed = True
    for statement in statements:
        types |= {name: False for name in assigned(statement) if name not in types}
        for expression in expressions(statement):
            unknown = sorted(names_in(expression) - known - set(buffers))
            if unknown:
                raise StagedError(statement.line, f"{unknown[0]!r} has no value anywhere in the kernel")
    _check_loop_names(program, statements)
    return types


def _check_loop_names(program: Program, statements: Sequence[Stmt]) -> None:
    fixed = {each.name for each in program.scalars}
    for statement in statements:
        taken = sorted(set(assigned(statement)) & fixed)
        if taken:
            raise StagedError(_line(statement), f"{taken[0]!r} comes from the host and stays as it is")
        if isinstance(statement, (Loop, Tiles)):
            inside = {name for inner in walk(statement.body) for name in assigned(inner)}
            bounds = {name for each in expressions(statement) for name in names_in(each)}
            again = sorted(inside & {*assigned(statement), *bounds})
            if again:
                problem = f"{again[0]!r} of this loop, or of its bounds, is assigned inside of it"
                raise StagedError(statement.line, problem)
    loops = {n for s in statements if isinstance(s, (Loop, Tiles)) for n in assigned(s)}
    _check_scopes(program.body, loops, set())


def _check_scopes(body: Sequence[Stmt], loops: set[str], inside: set[str]) -> None:
    """Check that variables of loops are used in their loops alone."""
    for statement in body:
        used = {name for each in expressions(statement) for name in names_in(each)}
        own = set(assigned(statement)) if isinstance(statement, (Loop, Tiles)) else set()
        others = set(assigned(statement)) - own
        outside = sorted((used | others) & loops - inside)
        if outside:
            raise StagedError(_line(statement), f"{outside[0]!r} is a loop's, used outside of its loop")
        for inner in children(statement):
            _check_scopes(inner, loops, inside | own)


def _line(statement: Stmt) -> int:
    return statement.line


def _check_division(expression: ast.expr, types: Mapping[str, bool], buffers: Mapping[str, bool]) -> None:
    """Check that what is divided or shifted as whole numbers is."""
    for node in ast.walk(expression):
        sides: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod, ast.LShift)):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            sides = node.args if node.func.id in ("ceil_div", "align") else []
        if any(is_float(each, types, buffers) for each in sides):
            raise StagedError(expression.lineno, "// % << ceil_div and align take whole numbers")


def _check_whole(statement: object, types: Mapping[str, bool], buffers: Mapping[str, bool]) -> None:
    """Check that counts, offsets and bounds are whole numbers."""
    wholes: list[object] = []
    if isinstance(statement, Transfer):
        wholes = [statement.at, statement.count, statement.rows, statement.pitch, statement.local.offset]
        wholes.append(statement.room)
    elif isinstance(statement, Op):
        views = [statement.dst, *statement.sources]
        wholes = [statement.count, *(view.offset for view in views)]
    elif isinstance(statement, (Loop, Tiles, Share)):
        wholes = list(expressions(statement))
    elif isinstance(statement, Write):
        wholes = [statement.index]
    for each in wholes:
        if each is not None and is_float(each, types, buffers):  # type: ignore[arg-type]
            raise StagedError(statement.line, "counts, offsets and bounds are whole numbers: divide with //")  # type: ignore[attr-defined]


def _check_operation(op: Op, dtypes: Mapping[str, str]) -> None:
    operation = OPERATIONS[op.name]
    dtype = dtypes[op.dst.buffer]
    if dtype not in operation.types:
        allowed = ", ".join(sorted(operation.types))
        raise StagedError(op.line, f"{op.name} writes {allowed}; {op.dst.buffer} is {dtype}")
    others = [dtypes[each.buffer] for each in op.operands if isinstance(each, BufferView)]
    kinds = [kind for kind in operation.operands if kind != "s"]
    for kind, other in zip(kinds, others, strict=True):
        if kind == "v" and other != dtype:
            raise StagedError(
                op.line, f"{op.name}: {op.dst.buffer} is {dtype}, an operand is {other}; cast first"
            )
        if kind == "m" and other != "u8":
            raise StagedError(op.line, f"{op.name} takes bits (u8) made by a comparison first")
    if operation.unit > 1 and op.dst.buffer == op.sources[0].buffer:
        raise StagedError(op.line, f"{op.name} reads {op.dst.buffer} while it writes it; take another buffer")
    if OTHER in operation.operands:
        _check_mixed(op, dtype, others)


def _check_mixed(op: Op, dtype: str, others: Sequence[str]) -> None:
    if op.name == "cast" and (dtype, others[0]) not in _CASTS and not (dtype == others[0] == GENERIC):
        raise StagedError(
            op.line, f"there is no cast from {others[0]} to {dtype}; go through f32 (f16 for u8)"
        )
    if OPERATIONS[op.name].unit > 1 and others[0] != dtype:
        raise StagedError(op.line, f"{op.name} takes a buffer of f32, got {others[0]}")
    if op.name == "gather" and (others[0] != dtype or others[1] != "i32"):
        raise StagedError(op.line, "gather takes a buffer of the type of dst and byte offsets in i32")
    if OPERATIONS[op.name].bits and (set(others) - {"f32", "f16", "T"} or len(set(others)) > 1):
        raise StagedError(op.line, f"{op.name} compares f32 or f16, got {', '.join(others)}")


def _check_transfer(transfer: Transfer, program: Program, dtypes: Mapping[str, str]) -> None:
    tensor = program.tensor(transfer.tensor)
    if transfer.stores and tensor.role == "gm":
        raise StagedError(transfer.line, f"{tensor.name} is an input: it is not written")
    if not transfer.stores and tensor.role == "out":
        raise StagedError(transfer.line, f"{tensor.name} is an output: what is read again goes through work")
    if dtypes[transfer.local.buffer] != tensor.dtype:
        raise StagedError(
            transfer.line,
            f"{tensor.name} is {tensor.dtype}, {transfer.local.buffer} is {dtypes[transfer.local.buffer]}; "
            "copies do not convert, cast does",
        )
