"""Pass 3, stages: a function for each stage, and the loops and conditions around them in ``Process``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ascend_gym.staged.lifetimes import Lifetime
from ascend_gym.staged.lower.context import Context, name_of, scalar_type, share_part
from ascend_gym.staged.lower.declarations import Declarations, copied_ahead, names_of
from ascend_gym.staged.lower.instructions import LOCAL, inner, inside
from ascend_gym.staged.syntax import (
    Assign,
    If,
    Loop,
    Share,
    Stage,
    Stmt,
    SyncAll,
    Tiles,
    Transfer,
    assigned,
    buffers_in,
    walk,
)

_NAMES = {"copyin": "CopyIn", "compute": "Compute", "copyout": "CopyOut"}
_HELD = "Held"
INLINE = "__aicore__ inline __attribute__((always_inline))"
"""Of functions that are called once: with them the kernel's object stays in registers."""

_WORK_FLAG = [
    "const auto written = static_cast<event_t>(GetTPipePtr()->FetchEventID(AscendC::HardEvent::MTE3_MTE2));",
    "AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(written);",
    "AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(written);",
]


@dataclass(frozen=True)
class _Argument:
    """A scalar that a stage takes: by reference if it changes it for others."""

    name: str
    is_float: bool
    changed: bool

    @property
    def declaration(self) -> str:
        """The parameter as it is declared."""
        kind = scalar_type(is_float=self.is_float)
        return f"{kind}& {name_of(self.name)}" if self.changed else f"{kind} {name_of(self.name)}"


class Stages:
    """Writes ``Process`` and the functions that it calls."""

    def __init__(self, context: Context) -> None:
        self._context, self._lifetimes = context, context.verified.lifetimes
        self._fixed = {each.name for each in context.program.scalars}
        self._stages = [s for s in walk(context.program.body) if isinstance(s, Stage)]
        kinds = Counter(stage.kind for stage in self._stages)
        seen: Counter[str] = Counter()
        self._functions: dict[int, str] = {}
        for stage in self._stages:
            seen[stage.kind] += 1
            number = str(seen[stage.kind]) if kinds[stage.kind] > 1 else ""
            self._functions[id(stage)] = f"{_NAMES[stage.kind]}{number}"
        self._outside = self._names_outside()
        self._shares = 0

    def process(self) -> str:
        """Return the function ``Process``."""
        scalars = {
            name for s in self._at_process_level() for name in assigned(s) if isinstance(s, (Assign, Share))
        }
        scalars |= {a.name for stage in self._stages for a in self._arguments(stage) if a.changed}
        body = self._context.program.body
        declared = Declarations(self._context, scalars, body)
        lines = [*declared.hoisted(), *self._block(body, declared)]
        return _function("void Process()", lines)

    def functions(self) -> str:
        """Return a function for each stage, in order."""
        return "\n".join(self._function(stage) for stage in self._stages)

    def _at_process_level(self) -> Iterator[Stmt]:
        inside = {id(s) for stage in self._stages for s in walk(stage.body)}
        return (s for s in walk(self._context.program.body) if id(s) not in inside)

    def _names_outside(self) -> dict[int, set[str]]:
        """Return for each stage the scalars that occur outside of it."""
        counts: Counter[str] = Counter()
        own: dict[int, Counter[str]] = {}
        inside: set[int] = set()
        for stage in self._stages:
            own[id(stage)] = Counter(name for s in walk(stage.body) for name in names_of(s))
            inside |= {id(s) for s in walk(stage.body)}
        for statement in walk(self._context.program.body):
            counts.update(names_of(statement))
        return {key: {name for name in counts if counts[name] > mine[name]} for key, mine in own.items()}

    def _arguments(self, stage: Stage) -> list[_Argument]:
        statements = list(walk(stage.body))
        changed = {n for s in statements if isinstance(s, Assign) for n in assigned(s)}
        loops = {n for s in statements if isinstance(s, (Loop, Tiles)) for n in assigned(s)}
        used = {n for s in statements for n in names_of(s)} - self._fixed - set(self._lifetimes.roles) - loops
        outside = self._outside[id(stage)]
        types = self._context.verified.types
        return [
            _Argument(name, types.get(name, False), name in changed)
            for name in sorted(used)
            if name not in changed or name in outside
        ]

    def _block(self, body: Sequence[Stmt], declared: Declarations, skip: int = 0) -> list[str]:
        """Return the statements of a list, but for the first ``skip``."""
        lines: list[str] = []
        held = [each for each in self._lifetimes.by_body.get(id(body), []) if not each.local]
        for index, statement in enumerate(body):
            if index < skip:
                continue
            lines += [_begin(self._context, each, _HELD) for each in held if each.first == index]
            lines += self._statement(statement, declared)
            lines += [_end(each, _HELD) for each in held if each.last == index]
        return lines

    def _statement(self, statement: Stmt, declared: Declarations) -> list[str]:
        text = self._context.expression
        if isinstance(statement, Assign):
            return [f"{declared.kind(statement)}{name_of(statement.name)} = {text(statement.value)};"]
        if isinstance(statement, Share):
            return self._share(statement, declared)
        if isinstance(statement, Stage):
            arguments = ", ".join(name_of(each.name) for each in self._arguments(statement))
            return [f"{self._functions[id(statement)]}({arguments});"]
        if isinstance(statement, SyncAll):
            return ["AscendC::SyncAll();"]
        if isinstance(statement, (Loop, Tiles)):
            return self._loop(statement, declared)
        if isinstance(statement, If):
            lines = [f"if ({text(statement.test)}) {{", *inner(self._block(statement.body, declared))]
            if statement.orelse:
                lines += ["} else {", *inner(self._block(statement.orelse, declared))]
            return [*lines, "}"]
        return inside(self._context, statement)

    def _loop(self, statement: Loop | Tiles, declared: Declarations) -> list[str]:
        """Return a loop; where that can be done it copies one step ahead of what it computes."""
        text = self._context.expression
        if isinstance(statement, Loop):
            at, step, first, end = name_of(statement.name), "1", text(statement.start), text(statement.stop)
            counts: dict[str, str] = {}
        else:
            at, step, first, end = name_of(statement.offset), text(statement.tile), "0", text(statement.total)
            counts = {name_of(statement.count): f"MinOf<int64_t>({step}, ({end}) - {at})"}
        here = [f"const int64_t {name} = {count};" for name, count in counts.items()]
        move = f"{at}++" if step == "1" else f"{at} += {step}"
        ahead = copied_ahead(self._context.verified, statement)
        if ahead is None:
            head = f"for (int64_t {at} = {first}; {at} < {end}; {move}) {{"
            return [head, *inner([*here, *self._block(statement.body, declared)]), "}"]
        assigns = statement.body[:ahead]
        kept = [*counts, *(name_of(each.name) for each in assigns if isinstance(each, Assign))]
        floats = {
            name_of(each.name) for each in assigns if isinstance(each, Assign) and self._is_float(each.name)
        }
        begun = [f"{name} = {count};" for name, count in counts.items()]
        begun += [
            f"{name_of(each.name)} = {text(each.value)};" for each in assigns if isinstance(each, Assign)
        ]
        begun += self._block(statement.body[ahead : ahead + 1], declared)
        later = {name: f"{name}Next" for name in (at, *kept)}
        begun = [_renamed(line, later) for line in begun]
        rest = self._block(statement.body, declared, skip=ahead + 1)
        types = {name: scalar_type(is_float=name in floats) for name in kept}
        lines = [
            *(f"{types[name]} {later[name]} = 0;" for name in kept),
            f"for (int64_t {later[at]} = {first}; {later[at]} < ({end}) + {step}; "
            f"{_renamed(move, later)}) {{",
            *(f"    const {types[name]} {name} = {later[name]};" for name in kept),
            f"    const int64_t {at} = {later[at]} - {step};",
            f"    if ({later[at]} < {end}) {{",
            *inner(inner(begun)),
            "    }",
            f"    if ({at} < {first}) {{",
            "        continue;",
            "    }",
            *inner(rest),
            "}",
        ]
        return ["{", *inner(lines), "}"] if kept else lines

    def _is_float(self, name: str) -> bool:
        return self._context.verified.types.get(name, False)

    def _share(self, statement: Share, declared: Declarations) -> list[str]:
        first, count = name_of(statement.first), name_of(statement.count)
        context = self._context
        total, kind = context.expression(statement.total), declared.kind(statement)
        total = total if total.isidentifier() else f"({total})"
        part, lines = context.parts.get(id(statement), ""), []
        if not part:
            self._shares += 1
            part = f"part{self._shares}"
            cores = "static_cast<int64_t>(AscendC::GetBlockNum())"
            lines = [f"const int64_t {part} = {share_part(context, statement, context.expression, cores)};"]
        core = "static_cast<int64_t>(AscendC::GetBlockIdx())"
        return [
            *lines,
            f"{kind}{first} = MinOf<int64_t>({core} * {part}, {total});",
            f"{kind}{count} = MinOf<int64_t>({part}, {total} - {first});",
        ]

    def _function(self, stage: Stage) -> str:
        arguments = self._arguments(stage)
        given = {each.name for each in arguments}
        scalars = {n for s in walk(stage.body) if isinstance(s, Assign) for n in assigned(s)} - given
        declared = Declarations(self._context, scalars, stage.body)
        names = self._tensor_names(stage)
        before, after = self._edges(stage)
        lines = [*before, *declared.hoisted(), *self._block(stage.body, declared), *after]
        head = f"void {self._functions[id(stage)]}({', '.join(each.declaration for each in arguments)})"
        return _function(head, [_renamed(line, names) for line in lines])

    def _tensor_names(self, stage: Stage) -> dict[str, str]:
        """Return what tensors that are held between stages are called in a stage."""
        if stage.kind != "compute":
            return {}
        touched = {name for s in walk(stage.body) for name in buffers_in(s)}
        local = {each.buffer for each in self._local_to(stage)}
        queued = [name for name in touched if self._lifetimes.roles[name] != "temp"]
        return {f"{name}{LOCAL}": f"{name}{_HELD}" for name in queued if name not in local}

    def _local_to(self, stage: Stage) -> list[Lifetime]:
        return [each for each in self._lifetimes.all if each.local and each.body[each.first] is stage]

    def _edges(self, stage: Stage) -> tuple[list[str], list[str]]:
        """Return what stands before and after the body of a stage's function."""
        context = self._context
        touched = sorted({name for s in walk(stage.body) for name in buffers_in(s)})
        if stage.kind == "compute":
            own = self._local_to(stage)
            before = [_begin(context, each, LOCAL) for each in own]
            temporary = [name for name in touched if self._lifetimes.roles[name] == "temp"]
            before += [_get(context, name) for name in temporary]
            return before, [_end(each, LOCAL) for each in own]
        if stage.kind == "copyin":
            before = [_alloc(context, name) for name in touched]
            reads_work = any(
                context.program.tensor(s.tensor).role == "work"
                for s in walk(stage.body)
                if isinstance(s, Transfer)
            )
            if reads_work:
                before = [*_WORK_FLAG, *before]
            return before, [f"{name}Queue.EnQue({name}Local);" for name in touched]
        before = [_dequeue(context, name, LOCAL) for name in touched]
        return before, [f"{name}Queue.FreeTensor({name}Local);" for name in touched]


def _begin(context: Context, lifetime: Lifetime, suffix: str) -> str:
    name, element = lifetime.buffer, context.element(lifetime.buffer)
    if not lifetime.stored:
        return _dequeue(context, name, suffix)
    declared = "" if suffix == _HELD else f"AscendC::LocalTensor<{element}> "
    return f"{declared}{name}{suffix} = {name}Queue.template AllocTensor<{element}>();"


def _end(lifetime: Lifetime, suffix: str) -> str:
    call = "EnQue" if lifetime.stored else "FreeTensor"
    return f"{lifetime.buffer}Queue.{call}({lifetime.buffer}{suffix});"


def _dequeue(context: Context, name: str, suffix: str) -> str:
    element = context.element(name)
    declared = "" if suffix == _HELD else f"AscendC::LocalTensor<{element}> "
    return f"{declared}{name}{suffix} = {name}Queue.template DeQue<{element}>();"


def _alloc(context: Context, name: str) -> str:
    element = context.element(name)
    return f"AscendC::LocalTensor<{element}> {name}Local = {name}Queue.template AllocTensor<{element}>();"


def _get(context: Context, name: str) -> str:
    element = context.element(name)
    return f"AscendC::LocalTensor<{element}> {name}Local = {name}Buf.template Get<{element}>();"


def _renamed(line: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        line = re.sub(rf"\b{old}\b", new, line)
    return line


def _function(head: str, lines: Sequence[str]) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"    {INLINE} {head}\n    {{\n{body}    }}\n"
