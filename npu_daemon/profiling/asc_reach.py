"""What of a program's code a kernel reaches by name: the classes and functions that its body uses."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

_DEFINITION = re.compile(
    r"\b(?:class|struct)\s+(?P<class>\w+)[^;{}()=]*\{|\b(?P<function>\w+)\s*\([^;{}]*\)\s*(?:const\s*)?\{"
)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_BRACE = re.compile(r"[{}]")


def reached_text(code: str, body: str) -> str:
    """Return the body of a kernel and the definitions that it names, also indirectly.

    Args:
        code: of the whole program, without comments and strings.
        body: the kernel's own.

    Names are told apart by themselves alone: functions of one name are all reached, those inside classes
    with their class.
    """
    definitions = defaultdict(list)
    for name, text in _definitions(code):
        definitions[name].append(text)
    reached: dict[str, None] = {body: None}
    waiting = [body]
    while waiting:
        for word in set(_WORD.findall(waiting.pop())):
            new = [text for text in definitions.pop(word, ()) if text not in reached]
            reached.update(dict.fromkeys(new))
            waiting += new
    return "\n".join(reached)


def _definitions(code: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each class, and of each function that is in none."""
    end = 0
    for found in _DEFINITION.finditer(code):
        if found.start() >= end:
            end = _closed(code, found.end())
            yield found["class"] or found["function"], code[found.start() : end]


def _closed(code: str, inside: int) -> int:
    """Return where the brace that was opened right before a place is closed."""
    depth = 1
    for brace in _BRACE.finditer(code, inside):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(code)
