"""Where scalars are declared in C++, and copies that are issued ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ascend_gym.staged.lower.context import Context, name_of, scalar_type
from ascend_gym.staged.syntax import (
    Assign,
    Loop,
    Share,
    Stage,
    Stmt,
    Tiles,
    Transfer,
    assigned,
    buffers_in,
    children,
    expressions,
    names_in,
    walk,
)
from ascend_gym.staged.verify import Verified


class Declarations:
    """Where scalars are declared: at their first assignment if that comes before all else, or on top."""

    def __init__(self, context: Context, scalars: set[str], body: Sequence[Stmt]) -> None:
        self._context = context
        self._at: dict[int, set[str]] = {}
        below = names_below(body)
        placed: set[str] = set()
        for name in sorted(scalars):
            place = first_assignment(name, body, below)
            if place is not None:
                self._at.setdefault(id(place), set()).add(name)
                placed.add(name)
        for statement in walk(body):
            own = self._at.get(id(statement), set())
            if isinstance(statement, Share) and own and own != set(assigned(statement)):
                placed -= own
                del self._at[id(statement)]
        self._hoisted = sorted(scalars - placed)

    def hoisted(self) -> list[str]:
        """Return the declarations on top."""
        types = self._context.verified.types
        return [
            f"{scalar_type(is_float=types[name])} {name_of(name)} = {'0.0f' if types[name] else '0'};"
            for name in self._hoisted
        ]

    def kind(self, statement: Assign | Share) -> str:
        """Return the type to put before an assignment that declares."""
        names = self._at.get(id(statement), set())
        if not names:
            return ""
        return f"{scalar_type(is_float=self._context.verified.types[assigned(statement)[0]])} "


def first_assignment(name: str, body: Sequence[Stmt], below: Mapping[int, set[str]]) -> Stmt | None:
    """Return the assignment that comes before all else with that name in the only list that has it all.

    Args:
        name: the scalar.
        body: the statements.
        below: names in each statement and below it, by identity (see ``names_below``).
    """
    users = [statement for statement in body if name in below[id(statement)]]
    if not users:
        return None
    first = users[0]
    if isinstance(first, (Assign, Share)) and name in assigned(first):
        return None if any(name in names_in(each) for each in expressions(first)) else first
    if len(users) == 1 and isinstance(first, (Loop, Tiles)):
        return first_assignment(name, first.body, below)
    return None


def names_below(body: Sequence[Stmt]) -> dict[int, set[str]]:
    """Return the scalars and buffers that each statement names, itself or below, by identity."""
    found: dict[int, set[str]] = {}
    for statement in body:
        names = names_of(statement)
        for inner in children(statement):
            found |= names_below(inner)
            names.update(*(found[id(each)] for each in inner))
        found[id(statement)] = names
    return found


def names_of(statement: Stmt) -> set[str]:
    """Return the scalars and buffers that a statement itself names."""
    return {*assigned(statement), *(name for each in expressions(statement) for name in names_in(each))}


def copied_ahead(verified: Verified, loop: Loop | Tiles) -> int | None:
    """Return where a loop has the copy-in that can be issued before the step that comes before.

    It comes first but for scalars that depend on nothing else in the loop, nothing in the step changes what
    it copies, and its queues have room for two.
    """
    at = next((index for index, each in enumerate(loop.body) if not isinstance(each, Assign)), None)
    if at is None or at + 1 == len(loop.body):
        return None
    copy, rest = loop.body[at], list(walk(loop.body[at + 1 :]))
    if not isinstance(copy, Stage) or copy.kind != "copyin":
        return None
    copies = [each for each in walk([copy]) if isinstance(each, Transfer)]
    buffers = {name for each in walk([copy]) for name in buffers_in(each)}
    used = {name for each in walk(loop.body[: at + 1]) for name in names_of(each)}
    changed = {name for each in rest for name in assigned(each)}
    again = {each.local.buffer for each in rest if isinstance(each, Transfer)}
    inputs = all(verified.program.tensor(each.tensor).role == "gm" for each in copies)
    room = all(verified.depths[name] > 1 for name in buffers)
    fits = inputs and room and not again & buffers and not changed & used
    return at if fits and _stand_alone(verified, loop, loop.body[:at]) else None


def _stand_alone(verified: Verified, loop: Loop | Tiles, assigns: Sequence[Stmt]) -> bool:
    """Say whether scalars are computed afresh in each step, and are the loop's own."""
    inside = {id(each) for each in walk([loop])}
    outside = {
        name for each in walk(verified.program.body) if id(each) not in inside for name in names_of(each)
    }
    names = [name for each in assigns for name in assigned(each)]
    left = set(names)
    for each in assigns:
        if left & {name for expression in expressions(each) for name in names_in(expression)}:
            return False
        left -= set(assigned(each))
    return len(set(names)) == len(names) and not outside & set(names)
