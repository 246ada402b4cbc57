"""Reads the text of a program into ``Program``; nothing of it is executed."""

from __future__ import annotations

import ast
import re

from ascend_gym.staged.expressions import HOST_FUNCTIONS, KERNEL_FUNCTIONS, Names, called, functions_of
from ascend_gym.staged.operations import OPERATIONS, SCALAR
from ascend_gym.staged.syntax import (
    GENERIC,
    SIZES_BYTES,
    Alloc,
    Assign,
    BufferView,
    If,
    Loop,
    Op,
    Program,
    Scalar,
    Share,
    Stage,
    StagedError,
    Stmt,
    SyncAll,
    Tensor,
    Tiles,
    Transfer,
    Write,
)

STAGES = ("copyin", "compute", "copyout")
_ROLES = ("gm", "out", "work")
_MAX_CHARS = 65536
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def parse(text: str) -> Program:
    """Return the program of a text.

    Raises:
        StagedError: the text breaks the grammar; the message names the line.
    """
    if len(text) > _MAX_CHARS:
        raise StagedError(0, f"a program has at most {_MAX_CHARS} characters, this one {len(text)}")
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise StagedError(getattr(error, "lineno", 0) or 0, f"not Python syntax: {error}") from error
    functions = {each.name: each for each in module.body if isinstance(each, ast.FunctionDef)}
    others = [each for each in module.body if not isinstance(each, ast.FunctionDef) and not _is_text(each)]
    if others or set(functions) != {"host", "kernel"}:
        line = others[0].lineno if others else 0
        raise StagedError(line, "a program is the two functions host and kernel, and nothing else")
    return _Parser().program(functions["host"], functions["kernel"], text)


class _Parser:
    """Holds what the two functions share while they are read."""

    def __init__(self) -> None:
        self._names = Names()

    def program(self, host: ast.FunctionDef, kernel: ast.FunctionDef, text: str) -> Program:
        """Read both functions."""
        tensors, scalars = self._kernel_parameters(kernel)
        self._names.tensors = {each.name: each for each in tensors}
        attributes = [_scalar_parameter(each) for each in _parameters(host)]
        assignments, cores, workspace = self._host(host)
        allocs, body = self._kernel_body(kernel)
        known = {each.name for each in assignments} | {each.name for each in attributes}
        for scalar in scalars:
            if scalar.name not in known:
                raise StagedError(
                    kernel.lineno, f"kernel takes {scalar.name!r}, which host neither assigns nor takes"
                )
        return Program(
            tensors=tuple(tensors),
            scalars=tuple(scalars),
            attributes=tuple(attributes),
            host=tuple(assignments),
            cores=cores,
            workspace=workspace,
            allocs=tuple(allocs),
            body=body,
            knobs=self._names.knobs,
            text=text,
        )

    def _kernel_parameters(self, kernel: ast.FunctionDef) -> tuple[list[Tensor], list[Scalar]]:
        tensors: list[Tensor] = []
        scalars: list[Scalar] = []
        for argument in _parameters(kernel):
            note = argument.annotation
            if isinstance(note, ast.Subscript) and isinstance(note.value, ast.Name):
                role, dtype = note.value.id, note.slice.id if isinstance(note.slice, ast.Name) else ""
                if role not in _ROLES or dtype not in (*SIZES_BYTES, GENERIC):
                    raise StagedError(
                        argument.lineno, f"{argument.arg}: expected gm, out or work of f32, f16, i32, u8 or T"
                    )
                tensors.append(Tensor(argument.arg, role, dtype))
            else:
                scalars.append(_scalar_parameter(argument))
        order = [_ROLES.index(each.role) for each in tensors]
        if order != sorted(order) or not any(each.role == "out" for each in tensors):
            raise StagedError(kernel.lineno, "tensors come as inputs (gm), outputs (out, at least one), work")
        if sum(each.role == "work" for each in tensors) > 1:
            raise StagedError(kernel.lineno, "there is one workspace at most")
        return tensors, scalars

    def _host(self, host: ast.FunctionDef) -> tuple[list[Assign], ast.expr, ast.expr | None]:
        assignments: list[Assign] = []
        body = [each for each in host.body if not _is_text(each)]
        for number, statement in enumerate(body):
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and called(call) == "launch":
                if number != len(body) - 1:
                    raise StagedError(statement.lineno, "launch(...) is the last statement of host")
                return assignments, *self._launch(call)
            name = _target(statement)
            if name is None or not isinstance(statement, ast.Assign):
                raise StagedError(
                    statement.lineno, "host holds assignments 'name = expression' and ends with launch(...)"
                )
            _check_name(name, statement.lineno)
            if name in {each.name for each in assignments}:
                raise StagedError(statement.lineno, f"host assigns {name!r} once")
            self._names.check(statement.value, HOST_FUNCTIONS)
            assignments.append(Assign(name, statement.value, statement.lineno))
        raise StagedError(host.lineno, "host ends with launch(cores=...)")

    def _launch(self, call: ast.Call) -> tuple[ast.expr, ast.expr | None]:
        given = {each.arg: each.value for each in call.keywords}
        if call.args or not set(given) <= {"cores", "workspace"} or "cores" not in given:
            raise StagedError(call.lineno, "expected launch(cores=..) or launch(cores=.., workspace=..)")
        for value in given.values():
            self._names.check(value, HOST_FUNCTIONS)
        return given["cores"], given.get("workspace")

    def _kernel_body(self, kernel: ast.FunctionDef) -> tuple[list[Alloc], list[Stmt]]:
        rest = [each for each in kernel.body if not _is_text(each)]
        while rest and isinstance(rest[0], ast.Assign) and _is_call(rest[0].value, "alloc_ub"):
            alloc = self._alloc(rest.pop(0))
            if alloc.name in self._names.buffers or alloc.name in self._names.tensors:
                raise StagedError(alloc.line, f"{alloc.name!r} is there already; give it another name")
            self._names.buffers[alloc.name] = alloc
        return list(self._names.buffers.values()), self._block(rest, stage=None)

    def _alloc(self, statement: ast.stmt) -> Alloc:
        name = _target(statement)
        call = statement.value if isinstance(statement, ast.Assign) else None
        if name is None or not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords:
            raise StagedError(statement.lineno, "expected name = alloc_ub(elements, dtype)")
        dtype = call.args[1].id if isinstance(call.args[1], ast.Name) else ""
        if dtype not in (*SIZES_BYTES, GENERIC):
            raise StagedError(statement.lineno, f"alloc_ub takes f32, f16, i32, u8 or T, not {dtype!r}")
        _check_name(name, statement.lineno)
        self._names.check(call.args[0], KERNEL_FUNCTIONS)
        return Alloc(name, call.args[0], dtype, statement.lineno)

    def _block(self, body: list[ast.stmt], stage: str | None) -> list[Stmt]:
        return [self._statement(each, stage) for each in body if not isinstance(each, ast.Pass)]

    def _statement(self, statement: ast.stmt, stage: str | None) -> Stmt:
        for name in _named(statement):
            _check_name(name, statement.lineno)
        if isinstance(statement, ast.For):
            return self._for(statement, stage)
        if isinstance(statement, ast.If):
            self._names.check(statement.test, functions_of(stage))
            body, orelse = self._block(statement.body, stage), self._block(statement.orelse, stage)
            return If(statement.test, body, orelse, statement.lineno)
        if isinstance(statement, ast.With):
            return self._stage(statement, stage)
        if isinstance(statement, ast.Assign):
            return self._assignment(statement, stage)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return self._call(statement.value, stage)
        raise StagedError(
            statement.lineno,
            f"{type(statement).__name__} is not part of the language; there are assignments, for over range "
            "or tiles, if, with copyin/compute/copyout, and calls",
        )

    def _for(self, statement: ast.For, stage: str | None) -> Stmt:
        call, line = statement.iter, statement.lineno
        if statement.orelse or not isinstance(call, ast.Call) or call.keywords:
            raise StagedError(line, "expected for i in range(a, b) or for at, n in tiles(total, tile)")
        for argument in call.args:
            self._names.check(argument, functions_of(stage))
        body = self._block(statement.body, stage)
        if called(call) == "range" and isinstance(statement.target, ast.Name) and len(call.args) in (1, 2):
            start = call.args[0] if len(call.args) == 2 else ast.Constant(0)
            return Loop(statement.target.id, start, call.args[-1], body, line)
        pair = _pair(statement.target)
        if called(call) == "tiles" and pair and len(call.args) == 2:
            return Tiles(*pair, call.args[0], call.args[1], body, line)
        raise StagedError(line, "expected for i in range(a, b) or for at, n in tiles(total, tile)")

    def _stage(self, statement: ast.With, stage: str | None) -> Stmt:
        item = statement.items[0]
        kind = called(item.context_expr)
        if len(statement.items) != 1 or kind not in STAGES or item.optional_vars is not None:
            raise StagedError(statement.lineno, "expected with copyin():, with compute(): or with copyout():")
        if stage is not None:
            raise StagedError(statement.lineno, f"{kind} stands inside {stage}: stages do not nest")
        return Stage(kind, self._block(statement.body, kind), statement.lineno)

    def _assignment(self, statement: ast.Assign, stage: str | None) -> Stmt:
        value, line = statement.value, statement.lineno
        if _is_call(value, "alloc_ub"):
            raise StagedError(line, "buffers are allocated at the top of the kernel, before anything else")
        pair = _pair(statement.targets[0]) if len(statement.targets) == 1 else None
        if pair and isinstance(value, ast.Call) and called(value) == "share" and len(value.args) in (1, 2):
            if stage is not None:
                raise StagedError(line, "share(..) stands outside of stages")
            for argument in value.args:
                self._names.check(argument, KERNEL_FUNCTIONS)
            return Share(*pair, value.args[0], value.args[1] if len(value.args) == 2 else None, line)
        name = _target(statement)
        if name is None:
            raise StagedError(line, "expected name = expression, or first, count = share(total)")
        if name in self._names.buffers or name in self._names.tensors:
            raise StagedError(line, f"{name!r} is a buffer or tensor: it cannot be assigned")
        self._names.check(value, functions_of(stage))
        return Assign(name, value, line)

    def _call(self, call: ast.Call, stage: str | None) -> Stmt:
        name, line = called(call), call.lineno
        if name == "sync_all" and not call.args:
            if stage is not None:
                raise StagedError(line, "sync_all() stands outside of stages")
            return SyncAll(line)
        if name in ("load", "store"):
            wanted = "copyin" if name == "load" else "copyout"
            if stage != wanted:
                raise StagedError(line, f"{name} stands inside with {wanted}(), not in {stage or 'no stage'}")
            return self._transfer(call, stores=name == "store")
        if stage != "compute":
            known = name in OPERATIONS or name == "write"
            problem = f"{name} stands inside with compute()" if known else f"there is no {name}"
            raise StagedError(line, f"{problem}, not in {stage or 'no stage'}")
        if name == "write" and len(call.args) == 3:
            self._names.check(call.args[1], functions_of(stage))
            self._names.check(call.args[2], functions_of(stage))
            return Write(self._names.buffer(call.args[0]), call.args[1], call.args[2], line)
        return self._operation(call)

    def _operation(self, call: ast.Call) -> Op:
        name, line = called(call), call.lineno
        operation = OPERATIONS.get(name)
        if operation is None:
            raise StagedError(line, f"there is no instruction {name!r}; there are {', '.join(OPERATIONS)}")
        wanted = len(operation.operands) + 2
        if len(call.args) != wanted or call.keywords:
            kinds = ["dst", *(_KINDS[kind] for kind in operation.operands), "count"]
            raise StagedError(line, f"expected {name}({', '.join(kinds)}), got {len(call.args)} arguments")
        operands: list[BufferView | ast.expr] = []
        for kind, argument in zip(operation.operands, call.args[1:-1], strict=True):
            if kind == SCALAR:
                self._names.check(argument, functions_of("compute"))
                operands.append(argument)
            else:
                operands.append(self._view(argument))
        self._names.check(call.args[-1], functions_of("compute"))
        return Op(name, self._view(call.args[0]), tuple(operands), call.args[-1], line)

    def _transfer(self, call: ast.Call, *, stores: bool) -> Transfer:
        form = "store(y[at], B, n)" if stores else "load(B, x[at], n)"
        extra = {each.arg: each.value for each in call.keywords}
        options = {"room"} if stores else {"room", "pad"}
        several = {"rows", "pitch"}
        known = set(extra) <= several | options and (several <= set(extra) or set(extra) <= {"pad"} & options)
        if len(call.args) != 3 or not known:
            raise StagedError(
                call.lineno,
                f"expected {form}, for several rows with rows=.., pitch=.. (and room=..; loads with pad=..)",
            )
        far, near = (call.args[0], call.args[1]) if stores else (call.args[1], call.args[0])
        if not isinstance(far, ast.Subscript) or not isinstance(far.value, ast.Name):
            raise StagedError(call.lineno, f"expected {form}: the tensor is given with its first element")
        tensor = self._names.tensors.get(far.value.id)
        if tensor is None or isinstance(far.slice, ast.Slice):
            raise StagedError(call.lineno, f"{ast.unparse(far)} is not an element of a tensor of the kernel")
        for value in (far.slice, call.args[2], *extra.values()):
            self._names.check(value, functions_of("copy"))
        return Transfer(
            stores,
            self._view(near),
            tensor.name,
            far.slice,
            call.args[2],
            extra.get("rows"),
            extra.get("pitch"),
            call.lineno,
            extra.get("pad"),
            extra.get("room"),
        )

    def _view(self, node: ast.expr) -> BufferView:
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Slice, ast.Tuple)):
            self._names.check(node.slice, functions_of("compute"))
            return BufferView(self._names.buffer(node.value), node.slice)
        return BufferView(self._names.buffer(node))


_KINDS = {"v": "buffer", "s": "number", "m": "bits", "o": "buffer"}


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    arguments = function.args
    special = [arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.posonlyargs]
    if any(special) or arguments.defaults or function.decorator_list:
        raise StagedError(function.lineno, f"{function.name} takes plain parameters without defaults")
    return arguments.args


def _scalar_parameter(argument: ast.arg) -> Scalar:
    dtype = argument.annotation.id if isinstance(argument.annotation, ast.Name) else ""
    if dtype not in ("i32", "f32"):
        raise StagedError(
            argument.lineno, f"{argument.arg}: expected a note such as gm[f32], out[f32], i32 or f32"
        )
    return Scalar(argument.arg, dtype)


def _named(statement: ast.stmt) -> list[str]:
    """Return the names that a statement gives a value."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.For) else targets
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def _check_name(name: str, line: int) -> None:
    if not _NAME.fullmatch(name):
        raise StagedError(line, f"{name!r}: names are lower case letters, digits and underscores")


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_call(node: ast.expr, name: str) -> bool:
    return called(node) == name


def _target(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _pair(node: ast.expr) -> tuple[str, str] | None:
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        first, second = node.elts
        if isinstance(first, ast.Name) and isinstance(second, ast.Name):
            return first.id, second.id
    return None
