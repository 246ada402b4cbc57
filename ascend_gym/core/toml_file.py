"""Reading TOML on every supported Python version, and explaining what is wrong in it or in other data."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ascend_gym.core.text import nearest

# tomllib came with Python 3.11; tomli is the same code for 3.10
_toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_HEADER = re.compile(r"\s*(\[\[?)\s*([^][]+?)\s*\]")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[\w-]+)*)\s*=""")

_NAMED_KEY = re.compile(r"([a-z_]+): ")  # what a check of a whole table says is wrong in it

_Place: TypeAlias = tuple[str | int, ...]


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        ValueError: the file is not UTF-8 or not TOML; the message says where.
        OSError: the file cannot be read.
    """
    content: dict[str, Any] = _toml.loads(path.read_text(encoding="utf-8"))
    return content


def unknown_key(model: type[BaseModel], where: Sequence[str | int]) -> str:
    """Return the message for an unknown key: the most similar valid key, and all valid ones.

    Args:
        model: model of the whole file.
        where: path of the key, as in pydantic's errors.
    """
    table = model
    for part in where[:-1]:
        field = table.model_fields.get(str(part))
        table = (_table_in(field.annotation) if field is not None else None) or table
    known = list(table.model_fields)
    return f"unknown key{nearest(str(where[-1]), known)}; known are {', '.join(known)}"


def first_problem(error: ValidationError, model: type[BaseModel]) -> tuple[str, str]:
    """Return the first invalid setting as ``section.key``, and what is wrong with it.

    An unknown key comes before a missing one, because that may be misspelt.

    Args:
        error: pydantic's validation error.
        model: model of all settings.
    """
    problem, *others = error.errors()
    if problem["type"] == "missing":
        problem = next((each for each in others if each["type"] == "extra_forbidden"), problem)
    says_what_came = problem["type"] in ("extra_forbidden", "missing", "value_error")
    came = "" if says_what_came else f"; got {problem['input']!r}"
    return ".".join(map(str, problem["loc"])), f"{_reason(problem, model)}{came}"


def reason_of(error: ValidationError) -> str:
    """Return the first reason why data are no record of a model."""
    return _message(error.errors()[0])


def _reason(problem: ErrorDetails, model: type[BaseModel]) -> str:
    if problem["type"] == "extra_forbidden":
        return unknown_key(model, problem["loc"])
    return _message(problem)


def _message(problem: ErrorDetails) -> str:
    return problem["msg"].removeprefix("Value error, ")


def line_of(text: str, where: Sequence[str | int]) -> int:
    """Return the one-based line of a key in a TOML document, or that of its closest known parent.

    Args:
        text: document.
        where: path of the key, as in pydantic's errors.

    Returns:
        The line; 0 if no part of the path is found.
    """
    counts: dict[_Place, int] = {}
    table: _Place = ()
    listing: _Place | None = None
    found, found_depth = 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table, listing = _opened_table(header, counts), None
            place = table
        elif key := _KEY.match(line):
            place = (*table, *(_bare(part) for part in key[1].split(".")))
            listing = place if line.rstrip().endswith("[") else None
        elif listing is not None and line.lstrip().startswith("{"):
            place = (*listing, _next_index(counts, listing))
        else:
            continue
        if place == tuple(where[: len(place)]) and len(place) > found_depth:
            found, found_depth = number, len(place)
    return found


def explained(path: Path, text: str, error: ValidationError, model: type[BaseModel]) -> str:
    """Return what is wrong with a TOML document as ``file:line: key: reason`` clauses.

    Args:
        path: path of the document.
        text: document.
        error: pydantic's validation error.
        model: model of the whole document.
    """
    details = error.errors()
    clauses = []
    for detail in details:
        where = detail["loc"]
        follows = any(other["loc"][: len(where)] == where and other is not detail for other in details)
        if detail["type"] == "too_short" and follows:
            continue
        reason = _reason(detail, model)
        named = _NAMED_KEY.match(reason)
        line = line_of(text, (*where, named[1]) if named else where)
        place = f"{path}:{line}" if line else str(path)
        clauses.append(f"{place}: {'.'.join(str(part) for part in where) or 'document'}: {reason}")
    return "; ".join(clauses)


def _bare(name: str) -> str:
    return name.strip().strip("'\"")


def _opened_table(header: re.Match[str], counts: dict[_Place, int]) -> _Place:
    """Return the place of the table that a header opens, counting the tables of an array."""
    place: _Place = ()
    names = [_bare(name) for name in header[2].split(".")]
    for depth, name in enumerate(names, 1):
        place = (*place, name)
        if depth == len(names) and header[1] == "[[":
            place = (*place, _next_index(counts, place))
        elif place in counts:
            place = (*place, counts[place])
    return place


def _next_index(counts: dict[_Place, int], place: _Place) -> int:
    counts[place] = counts.get(place, -1) + 1
    return counts[place]


def _table_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model in an annotation such as ``tuple[Model, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_table_in(argument) for argument in get_args(annotation))
    return next((found for found in inner if found is not None), None)
