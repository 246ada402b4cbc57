"""Cases of an operator of a library from programs that are read, not run: graph examples and tests of tiling.

Both spell types, shapes and attributes as literals, or as variables that are set to literals nearby. What
they say in another way is left out. Values are not theirs: they are drawn.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ascend_gym.core.cpp_text import without_comments

_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_EXTENTS = re.compile(r"vector<int64_t>\s+(\w+)\s*=?\s*\{([-\d,\s]*)\}")
_LISTS = re.compile(
    r"vector<\s*(?:std::)?vector<int64_t>\s*>\s+(\w+)\s*=?\s*(\{(?:[-\d,\s]|\{[-\d,\s]*\})*\})"
)
_TYPE_VARIABLE = re.compile(r"\bDataType\s+(\w+)\s*=?\s*\{?\s*(?:ge::)?DT_(\w+)")
_CALL = re.compile(r"\bADD_(\w*INPUT|OUTPUT\w*|\w*ATTR)\s*\(")
_SET_ATTRIBUTE = re.compile(r"\.set_attr_(\w+)\s*\(")
_TILING = re.compile(r"\bTilingContextPara\s+\w+\s*\(")
_SUCCEEDS = re.compile(r"ExecuteTestCase\s*\(\s*\w+\s*,\s*ge::GRAPH_SUCCESS")
_VALUE = re.compile(r"CreateFrom<[^;]*?>\s*\((.*)\)\s*$", re.DOTALL)
_TYPES = {"float": "float32", "bf16": "bfloat16", "double": "float64"}
_TYPE_NUMBERS = {"DT_FLOAT": 0, "DT_FLOAT16": 1, "DT_INT8": 2, "DT_INT32": 3, "DT_UINT8": 4, "DT_BF16": 27}

_TEST = re.compile(r"\bTEST(?:_F|_P)?\s*\(")
_FAKED = re.compile(r"\bTilingContextFaker\s*\(\s*\)")
_STORAGE_SHAPE = re.compile(r"\bStorageShape\s+(\w+)\s*=?\s*(?=\{)")
_OUTCOME = re.compile(r"(?:EXPECT|ASSERT)_EQ\s*\(\s*tiling_func\w*\s*\([^;]*?\)\s*,\s*ge::GRAPH_SUCCESS")
_CHAINED = re.compile(r"\.(\w+)\s*\(")

Row = tuple[str | int | None, Any, str]  # of a tensor: its name or place, its shape, its type
Draft = tuple[list[Row], list[Row], dict[str, Any], int]  # inputs, outputs, attributes, line


def graph_example(path: Path) -> Draft:
    """Return what an example of graph mode (``test_geir_*.cpp``) feeds its operator.

    Raises:
        ValueError: it uses none of the usual macros, or a shape or type is not spelled out.
    """
    raw = path.read_text(encoding="utf-8", errors="replace")
    text = _PREPROCESSOR.sub(lambda found: "\n" * found[0].count("\n"), without_comments(raw))
    shapes: dict[str, Any] = {name: _numbers(f"{{{extents}}}") for name, extents in _EXTENTS.findall(text)}
    shapes |= {name: _numbers(literal) for name, literal in _LISTS.findall(text)}
    types = {name: f"DT_{kind}" for name, kind in _TYPE_VARIABLE.findall(text)}
    inputs: list[Row] = []
    outputs: list[Row] = []
    attributes: dict[str, Any] = {}
    line = 0
    for call in _CALL.finditer(text):
        words = _arguments(text, call.end() - 1)
        if call[1].endswith("ATTR"):
            if len(words) == 2 and (value := _literal(words[1], types)) is not None:
                attributes[words[0]] = value
            continue
        if len(words) < 4:
            continue
        here = text.count("\n", 0, call.start()) + 1
        line = line or here
        kind = types.get(words[2], words[2]).removeprefix("ge::")
        shape = _shape(words[3], shapes)
        if not kind.startswith("DT_") or shape is None:
            raise ValueError(f"line {here}: the type or shape of {words[1]} is not spelled out")
        row = (words[1], shape, _type_name(kind))
        (outputs if call[1].startswith("OUTPUT") else inputs).append(row)
    for found in _SET_ATTRIBUTE.finditer(text):
        words = _arguments(text, found.end() - 1)
        if found[1] not in ("index", "value") and len(words) == 1:
            value = _literal(words[0], types)
            if value is not None:
                attributes.setdefault(found[1], value)
    if not inputs:
        raise ValueError("no input is added by one of the usual macros")
    return inputs, outputs, attributes, line


def tiling_tests(path: Path) -> Iterator[Draft]:
    """Yield the calls of a test of a tiling function (``test_*_tiling.cpp``) that it expects to succeed."""
    text = without_comments(path.read_text(encoding="utf-8", errors="replace"))
    starts = list(_TILING.finditer(text))
    for number, found in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        if not _SUCCEEDS.search(text, found.end(), end):
            continue
        words = _arguments(text, found.end() - 1)
        if len(words) < 3 or not words[1].startswith("{") or not words[2].startswith("{"):
            continue
        try:
            inputs, outputs = ([_described(row) for row in _items(words[place])] for place in (1, 2))
        except ValueError:
            continue
        attributes = {}
        for pair in _items(words[3]) if len(words) > 3 and words[3].startswith("{") else []:
            parts = _items(pair)
            value = _VALUE.search(parts[1]) if len(parts) == 2 else None
            if value is not None and (meant := _literal(value[1], {})) is not None:
                attributes[parts[0].strip('"')] = meant
        yield inputs, outputs, attributes, text.count("\n", 0, found.start()) + 1


def faked_contexts(path: Path) -> Iterator[Draft]:
    """Yield what tests of a tiling function, which set up its context call by call, expect to succeed."""
    text = without_comments(path.read_text(encoding="utf-8", errors="replace"))
    starts = [*(found.start() for found in _TEST.finditer(text)), len(text)]
    for begin, end in itertools.pairwise(starts):
        faked = _FAKED.search(text, begin, end)
        if faked is None or not _OUTCOME.search(text, faked.end(), end):
            continue
        shapes = {
            found[1]: _items(_braced(text, found.end()))[0]
            for found in _STORAGE_SHAPE.finditer(text, begin, faked.start())
            if _items(_braced(text, found.end()))
        }
        chain = text[faked.end() : text.find(";", faked.end())]
        calls = [(found[1], _arguments(chain, found.end() - 1)) for found in _CHAINED.finditer(chain)]
        try:
            inputs = _faked_side(calls, shapes, "Input", "IrInstanceNum")
            outputs = _faked_side(calls, shapes, "Output", "IrOutputInstanceNum")
        except (ValueError, IndexError):
            continue
        attributes = {}
        for pair in [
            pair for name, words in calls if name == "NodeAttrs" and words for pair in _items(words[0])
        ]:
            parts = _items(pair)
            value = _VALUE.search(parts[1]) if len(parts) == 2 else None
            if value is not None and (meant := _literal(value[1], {})) is not None:
                attributes[parts[0].strip('"')] = meant
        yield inputs, outputs, attributes, text.count("\n", 0, faked.start()) + 1


def _faked_side(
    calls: list[tuple[str, list[str]]], shapes: dict[str, str], side: str, instances: str
) -> list[Row]:
    """Return the tensors of one side that a context is set up with.

    Raises:
        ValueError: a shape or type is not spelled out, or a format is a special one.
    """
    given = next((_items(words[0]) for name, words in calls if name == f"{side}Shapes"), [])
    counts = next((_items(words[0]) for name, words in calls if name == instances), [])
    if not all(count.isdigit() for count in counts):
        raise ValueError("the numbers of instances are not spelled out")
    places = [place for place, count in enumerate(counts) for _ in range(int(count))] or list(
        range(len(given))
    )
    types = {int(words[0]): words for name, words in calls if name == f"Node{side}Td" and words[0].isdigit()}
    rows: list[Row] = []
    for number, (place, word) in enumerate(zip(places, given, strict=True)):
        if word in ("nullptr", "NULL"):
            continue
        words = types.get(number, [])
        if (
            len(words) < 2
            or "FRACTAL" in "".join(words)
            or not words[1].removeprefix("ge::").startswith("DT_")
        ):
            raise ValueError(f"no type of {word}")
        shape = _numbers(shapes.get(word.lstrip("&"), word))
        rows.append((place, shape, _type_name(words[1].removeprefix("ge::"))))
    return rows


def _braced(text: str, begin: int) -> str:
    """Return the braced text that begins there."""
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin : at + 1]
    return ""


def _described(row: str) -> Row:
    """Return a tensor of ``{{{shape}, {shape}}, type, format}``."""
    parts = _items(row)
    if len(parts) < 2:
        raise ValueError(f"no tensor: {row[:60]}")
    kind = parts[1].removeprefix("ge::")
    spelled = _items(parts[0])
    if not kind.startswith("DT_") or not spelled:
        raise ValueError(f"not spelled out: {row[:60]}")
    return None, _numbers(spelled[0]), _type_name(kind)


def _type_name(kind: str) -> str:
    name = kind.removeprefix("DT_").lower()
    return _TYPES.get(name, name)


def _shape(word: str, shapes: dict[str, Any]) -> Any:
    """Return the shape that an argument stands for: a literal, a variable, or an element of one."""
    if word.startswith("{"):
        return _numbers(word)
    name, _, index = word.partition("[")
    found = shapes.get(name.strip())
    if index and isinstance(found, tuple) and index.rstrip("] ").isdigit():
        number = int(index.rstrip("] "))
        found = found[number] if number < len(found) else None
    return found


def _numbers(literal: str) -> Any:
    """Return a braced list of whole numbers, or of such lists, as tuples.

    Raises:
        ValueError: it is something else.
    """
    try:
        value = ast.literal_eval(re.sub(r"\s+", "", literal).replace("{", "[").replace("}", "]"))
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"no list of numbers: {literal[:60]}") from error
    return tuple(tuple(each) if isinstance(each, list) else each for each in value)


def _literal(word: str, types: dict[str, str]) -> Any:
    """Return the value of an attribute, ``None`` where it is no literal."""
    word = types.get(word.strip(), word.strip()).removeprefix("ge::")
    if word in _TYPE_NUMBERS:
        return _TYPE_NUMBERS[word]
    if word.startswith("{"):
        word = word.replace("{", "[").replace("}", "]")
    word = re.sub(r"(?<=[\d.])[fFuUlL]+\b", "", word)
    word = {"true": "True", "false": "False"}.get(word, word)
    try:
        return ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return None


def _items(braced: str) -> list[str]:
    """Return the elements of a braced list, as text."""
    braced = braced.strip()
    return _arguments(braced, 0) if braced.startswith("{") else []


def _arguments(text: str, begin: int) -> list[str]:
    """Return what stands between the bracket at ``begin`` and the one that closes it, cut at commas."""
    words, depth, start, at, quoted = [], 0, begin + 1, begin, False
    while at < len(text):
        each = text[at]
        if each == '"' and text[at - 1] != "\\":
            quoted = not quoted
        elif not quoted and each in "([{":
            depth += 1
        elif not quoted and each in ")]}":
            depth -= 1
            if depth == 0:
                words.append(text[start:at].strip())
                break
        elif not quoted and each == "," and depth == 1:
            words.append(text[start:at].strip())
            start = at + 1
        at += 1
    return [word for word in words if word]
