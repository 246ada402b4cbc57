"""Rewrites launches ``kernel<<<block_dim, l2_control, stream>>>(arguments)`` into standard C++ calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ascend_gym.core.cpp_text import code_only, without_comments
from ascend_gym.core.errors import MisuseError
from npu_daemon.profiling.asc_reach import reached_text
from npu_daemon.simulator.task_type import TaskType, named_task_types, used_task_types

_NAME_BEFORE = re.compile(r"(?:[A-Za-z_]\w*\s*::\s*)*[A-Za-z_]\w*\s*$")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_KERNEL = re.compile(
    r"(?P<qualifiers>(?:(?:__\w+__(?:\s*\([^()]*\))?|extern\s*\"C\"|inline|static|\[\[[^\]]*\]\])\s+)+)"
    r"void\s+(?P<name>\w+)\s*\("
)
_LINE_MARKER = re.compile(r'# \d+ "((?:[^"\\]|\\.)*)"')
_LAUNCH_CALL = "asim::launch_kernel"
_LAUNCH_TYPES = {
    TaskType.AIV_ONLY: "KERNEL_TYPE_AIV_ONLY",
    TaskType.AIC_ONLY: "KERNEL_TYPE_AIC_ONLY",
    TaskType.MIX_1_1: "KERNEL_TYPE_MIX_AIC_1_1",
    TaskType.MIX_1_2: "KERNEL_TYPE_MIX_AIC_1_2",
}
_AS_EXPECTED = "KERNEL_TYPE_MAX"


@dataclass(frozen=True)
class _Launch:
    """One launch: ``text[start:end]`` is ``callee<<<configuration>>>(arguments)``."""

    start: int
    end: int
    callee: str
    configuration: tuple[str, ...]
    arguments: str


def has_launches(text: str) -> bool:
    """Return whether there is a launch outside comments and strings."""
    return "<<<" in code_only(text)


def code_of_files(preprocessed: str, folders: Sequence[str]) -> str:
    """Return the lines of preprocessed text that come from files below one of ``folders``."""
    kept, own = [], False
    for line in preprocessed.splitlines(keepends=True):
        marker = _LINE_MARKER.match(line)
        if marker:
            own = any(marker[1].startswith(f"{folder}/") for folder in folders)
        elif own:
            kept.append(line)
    return "".join(kept)


def kernel_types(texts: Iterable[str]) -> dict[str, TaskType]:
    """Return the kind of cores of each kernel that declares it, by qualifier or in its body.

    Where there are several, what a kernel reaches says so too, as in the device's compiler: the cores of its
    neighbours are not its own.
    """
    types: dict[str, TaskType] = {}
    for text in texts:
        code = without_comments(text)
        kernels = [found for found in _KERNEL.finditer(code) if "__global__" in found["qualifiers"]]
        starts = [*(found.start() for found in kernels), len(code)]
        for kernel, end in zip(kernels, starts[1:], strict=True):
            body = code[kernel.end() : end]
            named = named_task_types(kernel["qualifiers"], body)
            if not named and len(kernels) > 1:
                named = used_task_types(reached_text(code, body))
            if named:
                types[kernel["name"]] = named[0]
    return types


def with_launch_calls(text: str, types: Mapping[str, TaskType], first: int = 0) -> str:
    """Return the text with each launch as a call of ``asim::launch_kernel``; line numbers are preserved.

    Args:
        text: source with launches.
        types: kinds of cores that kernels declare; the others use the program's expected type.
        first: number of the first launch, different in each file of a program.

    Raises:
        MisuseError: brackets of a launch do not match, or it has no callee or no block dim.
    """
    parts, done = [], 0
    for number, launch in enumerate(_launches(text, code_only(text)), start=first):
        call = _call(number, launch, types)
        lost_lines = text.count("\n", launch.start, launch.end) - call.count("\n")
        parts += [text[done : launch.start], call, "\n" * lost_lines]
        done = launch.end
    return "".join([*parts, text[done:]])


def _call(number: int, launch: _Launch, types: Mapping[str, TaskType]) -> str:
    name = launch.callee.partition("<")[0].strip()
    known = types.get(name.rpartition("::")[2].strip())
    task_type = _LAUNCH_TYPES[known] if known is not None else _AS_EXPECTED
    arguments = f", {launch.arguments}" if launch.arguments.strip() else ""
    block_dim = launch.configuration[0].strip()
    call = f"[=](auto... asim_arguments) {{ {launch.callee.strip()}(asim_arguments...); }}"
    return f'{_LAUNCH_CALL}<{number}>("{name}", {task_type}, ({block_dim}), {call}{arguments})'


def _launches(text: str, code: str) -> Iterator[_Launch]:
    position = code.find("<<<")
    while position >= 0:
        start = _callee_start(code, position)
        closed = _find_closing(code, position + 3, ">>>")
        opened = _skip_space(code, closed + 3)
        if code[opened : opened + 1] != "(":
            raise _misuse(code, position, "expected (arguments) after >>>")
        end = _find_closing(code, opened + 1, ")")
        configuration = tuple(_split(text, code, position + 3, closed))
        if not configuration[0].strip():
            raise _misuse(code, position, "expected <<<block_dim, l2_control, stream>>>")
        yield _Launch(start, end + 1, text[start:position], configuration, text[opened + 1 : end])
        position = code.find("<<<", end)


def _callee_start(code: str, end: int) -> int:
    """Return the start of the name that ends at ``end``, including its template arguments."""
    at = len(code[:end].rstrip())
    if code[at - 1 : at] == ">":
        at = _template_start(code, at - 1)
    found = _NAME_BEFORE.search(code, 0, at)
    if found is None:
        raise _misuse(code, end, "expected the name of a kernel before <<<")
    return found.start()


def _template_start(code: str, closing: int) -> int:
    """Return the position of the ``<`` that matches the ``>`` at ``closing``, skipping brackets."""
    depth, nested = 0, 0
    for at in range(closing, -1, -1):
        character = code[at]
        if character in ")]}":
            nested += 1
        elif character in "([{":
            nested -= 1
        elif not nested and character == ">" and code[at - 1 : at] != "-":
            depth += 1
        elif not nested and character == "<":
            depth -= 1
            if depth == 0:
                return at
    raise _misuse(code, closing, "found > without its <")


def _find_closing(code: str, start: int, closing: str) -> int:
    """Return the position of ``closing`` outside all brackets opened after ``start``."""
    expected: list[str] = []
    for at in range(start, len(code)):
        character = code[at]
        if not expected and code.startswith(closing, at):
            return at
        if character in _CLOSING:
            expected.append(_CLOSING[character])
        elif expected and character == expected[-1]:
            expected.pop()
        elif character in ")]}":
            break
    raise _misuse(code, start, f"expected {closing}")


def _split(text: str, code: str, start: int, end: int) -> Iterator[str]:
    """Yield the parts of ``text[start:end]`` between commas outside brackets."""
    nested, since = 0, start
    for at in range(start, end):
        if code[at] in "([{":
            nested += 1
        elif code[at] in ")]}":
            nested -= 1
        elif code[at] == "," and nested == 0:
            yield text[since:at]
            since = at + 1
    yield text[since:end]


def _skip_space(code: str, at: int) -> int:
    return at + len(code[at:]) - len(code[at:].lstrip())


def _misuse(code: str, position: int, what: str) -> MisuseError:
    line = code.count("\n", 0, position) + 1
    return MisuseError(f"cannot read the launch at line {line}: {what}")
