"""Which loops copy one step ahead: the copy-in of the next step is issued before a step computes."""

from __future__ import annotations

from collections.abc import Sequence

from ascend_gym.staged.lower.declarations import names_of
from ascend_gym.staged.syntax import (
    Assign,
    Loop,
    Stage,
    Stmt,
    Tiles,
    Transfer,
    assigned,
    buffers_in,
    expressions,
    names_in,
    walk,
)
from ascend_gym.staged.verify import Verified


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
