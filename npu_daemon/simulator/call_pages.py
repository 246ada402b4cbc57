"""What the pages of an asc-devkit checkout say about calls of Atlas A2: sentences of constraint, and names.

Pages mark what is for other chips by comments; that is left out. A sentence is known by the digest of its
text, so that ``page_constraints.csv`` says what becomes of it without quoting it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAGES = Path("docs/zh/api")
CHIP = "910b"
_PRODUCT = "Atlas A2 训练系列产品"
# Interfaces of other programming models, and of chips with registers for vectors.
_OTHER_MODELS = (
    *("/Reg矢量计算/", "/矩阵计算（TensorAPI）/", "/data_structure_TensorAPI/", "/C-API/"),
    *("SIMT-API/", "AI-CPU-API/", "附录/"),
)
_MARK = re.compile(r"<!--\s*(?:npu=\"([^\"]*)\"\s*(?:id\w+)?|end\s*(?:id\w+)?)\s*-->")
_SUPPORT = re.compile(r"^## 产品支持情况.*?\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"```.*?```", re.DOTALL)
_BETWEEN_SENTENCES = re.compile(r"[\n。；]|<br>|\|")
_DECORATION = re.compile(r"^[\s\-*>.|•&0-9]+|<a [^>]*>|</a>|\*\*")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_KINDS = {
    "overlap": re.compile("重叠|复用|同一块"),
    "alignment": re.compile("对齐"),
    "range": re.compile(r"范围|取值|∈|\[\d+, ?[\d$\\]|不能超过|不超过|不得小于|不大于|不小于|不可超过"),
    "not supported": re.compile("不支持|暂不支持|不能|不可|不允许|不得|仅支持|只支持|只能|禁止"),
}
_PROTOTYPE = re.compile(
    r"(?:inline|__aicore__|static|constexpr|void|bool|T|int\w*|size_t)\s[^;(){}=]*?(\w+)\s*\("
)

_CONVERSION = re.compile(r"\boperator\s+\w+\s*\(")  # of a class to a type: no call

_ELEMENT = re.compile(r"(?<![\w])(?:u?int(?:8|16|32|64)_t|half|float|bfloat16_t)(?!\w)")
_CAST_ROW = re.compile(r"^\| (\w+) \| (\w+) \| ([^|]*(?:CAST_|SetDeqScale)[^|]*) \|$", re.MULTILINE)
_MODE = re.compile(r"CAST_\w+")


class Sentence(NamedTuple):
    """A sentence of constraint: its page below ``docs/zh/api``, digest, kind, and text."""

    page: str
    digest: str
    kind: str
    text: str


def for_chip(text: str) -> str:
    """Return the text of a page without what is for other chips only."""
    kept: list[str] = []
    open_marks: list[bool] = []
    at = 0
    for mark in _MARK.finditer(text):
        if all(open_marks):
            kept.append(text[at : mark.start()])
        at = mark.end()
        if mark[1] is not None:
            open_marks.append(CHIP in mark[1].split(","))
        elif open_marks:
            open_marks.pop()
    return "".join([*kept, text[at:] if all(open_marks) else ""])


def applying_pages(checkout: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text, for this chip, of the pages whose calls it has.

    Args:
        checkout: of asc-devkit.
    """
    root = checkout / PAGES
    for path in sorted(root.rglob("*.md")):
        name = path.relative_to(root).as_posix()
        if any(part in f"/{name}" for part in _OTHER_MODELS):
            continue
        text = path.read_text(encoding="utf-8")
        support = _SUPPORT.search(text)
        if support is None:
            continue
        lines = [line for line in for_chip(support[1]).splitlines() if _PRODUCT in line]
        if any("支持" in line and "不支持" not in line for line in lines):
            yield name, for_chip(text)


def sentences(page: str, text: str) -> Iterator[Sentence]:
    """Yield the sentences of constraint of one page, each once."""
    told = set()
    for part in _BETWEEN_SENTENCES.split(_CODE.sub("", section(text, "约束"))):
        sentence = _LINK.sub(r"\1", _DECORATION.sub("", part)).strip()
        kind = next((kind for kind, pattern in _KINDS.items() if pattern.search(sentence)), None)
        if kind is None or len(sentence) < 4 or sentence in told:
            continue
        told.add(sentence)
        yield Sentence(page, hashlib.sha256(sentence.encode()).hexdigest()[:12], kind, sentence)


def names(text: str) -> set[str]:
    """Return the functions that the prototypes of one page declare."""
    blocks = re.findall(r"```\w*\n(.*?)```", section(text, "函数原型"), re.DOTALL)
    return {name for block in blocks for name in _PROTOTYPE.findall(_CONVERSION.sub("", block))}


def element_types(text: str) -> frozenset[str]:
    """Return the element types that the page of an element-wise call names in its part about types."""
    return frozenset(_ELEMENT.findall(section(text, "数据类型")))


def cast_rows(text: str) -> dict[tuple[str, str], frozenset[str]]:
    """Return the rounding modes of each pair of source and result type in the table of Cast's page."""
    rows = _CAST_ROW.findall(text)
    return {(source, result): frozenset(_MODE.findall(modes)) for source, result, modes in rows}


def section(text: str, title: str) -> str:
    """Return what stands below the headings of the second level that have a word in them."""
    kept, inside, in_code = [], False, False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
        if not in_code and line.startswith("## "):
            inside = title in line
        elif inside:
            kept.append(line)
    return "\n".join(kept)
