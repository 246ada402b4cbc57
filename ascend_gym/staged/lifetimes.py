"""Roles of buffers, and from where to where a buffer that is copied holds something.

A buffer that is loaded is an input buffer, one that is stored an output buffer, all others are temporary.
What a copy-in brings is there until the next one of the same list of statements; what a copy-out takes away
was written since the one before. These ranges are what queues are made of: a tensor is dequeued where its
range begins and freed where it ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ascend_gym.staged.syntax import (
    Loop,
    Program,
    Stage,
    StagedError,
    Stmt,
    Tiles,
    Transfer,
    buffers_in,
    children,
    touches,
    walk,
)

MAX_QUEUE_BUFFERS = 8
"""Events between two pipes, of which each buffer of a queue holds one."""


@dataclass(frozen=True)
class Lifetime:
    """One use of an input or output buffer.

    Attributes:
        buffer: its name.
        stored: whether it ends in a copy-out rather than beginning with a copy-in.
        body: the list of statements that holds it.
        transfer: index in ``body`` of the stage that copies.
        first: index of the first statement that touches the buffer beside that.
        last: index of the last one.
        in_loop: whether ``body`` lies in a loop.
    """

    buffer: str
    stored: bool
    body: list[Stmt]
    transfer: int
    first: int
    last: int
    in_loop: bool

    @property
    def local(self) -> bool:
        """Whether one stage has all of it, so that the tensor is a variable of that stage."""
        return self.first == self.last and isinstance(self.body[self.first], Stage)


@dataclass(frozen=True)
class Lifetimes:
    """Roles and lifetimes of a program's buffers.

    Attributes:
        roles: ``in``, ``out`` or ``temp`` by buffer.
        all: every lifetime.
    """

    roles: Mapping[str, str]
    all: Sequence[Lifetime]

    @cached_property
    def by_body(self) -> Mapping[int, list[Lifetime]]:
        """Lifetimes by the identity of the list of statements that holds them."""
        found: dict[int, list[Lifetime]] = {}
        for each in self.all:
            found.setdefault(id(each.body), []).append(each)
        return found

    def depths(self, wanted: int = 2) -> dict[str, int]:
        """Return the tensors that the queue of each buffer has: ``wanted`` where it is copied in a loop.

        There are ``MAX_QUEUE_BUFFERS`` events for a direction; if they do not suffice, every queue has one.
        """
        depths = {
            name: wanted if any(each.in_loop for each in self.all if each.buffer == name) else 1
            for name, role in self.roles.items()
            if role != "temp"
        }
        for role in ("in", "out"):
            queues = [name for name in depths if self.roles[name] == role]
            if sum(depths[name] for name in queues) > MAX_QUEUE_BUFFERS:
                depths |= dict.fromkeys(queues, 1)
        return depths


def lifetimes_of(program: Program) -> Lifetimes:
    """Return roles and lifetimes.

    Raises:
        StagedError: a buffer has two roles, is copied and not used, or is used where it holds nothing.
    """
    roles = _roles(program)
    found: list[Lifetime] = []
    _collect(program.body, roles, in_loop=False, found=found)
    _check_coverage(program, roles, found)
    return Lifetimes(roles, found)


def _roles(program: Program) -> dict[str, str]:
    roles = {alloc.name: "temp" for alloc in program.allocs}
    for statement in walk(program.body):
        if isinstance(statement, Transfer):
            name, role = statement.local.buffer, "out" if statement.stores else "in"
            if roles[name] not in ("temp", role):
                raise StagedError(
                    statement.line,
                    f"{name} is both loaded and stored: a buffer has one role; compute into another buffer "
                    "and store that",
                )
            roles[name] = role
    for role, what in (("in", "loaded"), ("out", "stored")):
        queues = [name for name, each in roles.items() if each == role]
        if len(queues) > MAX_QUEUE_BUFFERS:
            raise StagedError(0, f"at most {MAX_QUEUE_BUFFERS} buffers are {what}, here {', '.join(queues)}")
    return roles


def _collect(body: list[Stmt], roles: Mapping[str, str], *, in_loop: bool, found: list[Lifetime]) -> None:
    for index, statement in enumerate(body):
        if isinstance(statement, Stage) and statement.kind != "compute":
            for name in sorted({n for each in walk([statement]) for n in buffers_in(each)}):
                found.append(_lifetime(body, index, name, roles[name], in_loop))
        if not isinstance(statement, Stage):
            inside = in_loop or isinstance(statement, (Loop, Tiles))
            for inner in children(statement):
                _collect(inner, roles, in_loop=inside, found=found)


def _lifetime(body: list[Stmt], index: int, name: str, role: str, in_loop: bool) -> Lifetime:
    """Return the range that belongs to the stage at ``index`` which copies ``name``."""
    stored = role == "out"
    order = range(index - 1, -1, -1) if stored else range(index + 1, len(body))
    users: list[int] = []
    for other in order:
        if _copies(body[other], name):
            break
        if touches(body[other], name):
            users.append(other)
    line = body[index].line
    if not users:
        problem = "stored, and nothing was computed into it since" if stored else "loaded and never used"
        where = "before the copy-out in the same list of statements" if stored else "after its copy-in"
        raise StagedError(line, f"{name} is {problem}; compute with it {where}")
    return Lifetime(name, stored, body, index, min(users), max(users), in_loop)


def _copies(statement: Stmt, name: str) -> bool:
    return (
        isinstance(statement, Stage)
        and statement.kind != "compute"
        and any(isinstance(each, Transfer) and each.local.buffer == name for each in walk([statement]))
    )


def _check_coverage(program: Program, roles: Mapping[str, str], found: Sequence[Lifetime]) -> None:
    """Check that copied buffers are touched within their lifetimes alone."""
    covered: dict[str, set[int]] = {name: set() for name in roles}
    for each in found:
        inside = each.body[each.first : each.last + 1]
        nested = [s for s in walk(inside) if _copies(s, each.buffer)]
        if nested:
            raise StagedError(
                nested[0].line, f"{each.buffer} is copied while it is still in use; take another buffer"
            )
        covered[each.buffer] |= {id(s) for s in walk(inside)}
        covered[each.buffer] |= {id(s) for s in walk([each.body[each.transfer]])}
    for statement in walk(program.body):
        for name in buffers_in(statement):
            if roles[name] != "temp" and id(statement) not in covered[name]:
                raise StagedError(statement.line, _OUTSIDE[roles[name]].format(name=name))


_OUTSIDE = {
    "in": "{name} holds nothing here: what is loaded is there from its copy-in to the end of the list of "
    "statements that has it",
    "out": "{name} is not stored after this: an output buffer is written in the list of statements that has "
    "its copy-out, since the one before",
}
