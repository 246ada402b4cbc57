"""Decisions about sentences of pages: against each other and, with ASC_DEVKIT set, against asc-devkit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npu_daemon.simulator import contracts
from npu_daemon.simulator.call_pages import (
    applying_pages,
    cast_rows,
    element_types,
    for_chip,
    names,
    sentences,
)

PAGE = """# Halve
## 函数原型
```cpp
__aicore__ inline void Halve(const LocalTensor<T>& dst)
inline constexpr operator value_type() const noexcept;
```
## 约束说明
- 不支持源操作数与目的操作数地址重叠。参考[通用](x.md)对齐约束；普通的话。
```
不支持
```
## 调用示例
不支持
"""


def test_every_decision_has_a_state_and_a_reason() -> None:
    rows = contracts.decisions()
    assert len({(each.page, each.digest) for each in rows}) == len(rows) > 900
    assert {each.state for each in rows} <= set(contracts.STATES)
    assert all(each.how in contracts.HOW for each in rows)
    assert all((each.how == "") == (each.state == "open") for each in rows)


def test_sentences_called_enforced_by_a_row_have_one() -> None:
    """Library pages: an overlap that counts as enforced is a row of contracts.def that forbids something."""
    rules = {f"SIMD-API/{row.page}": row.rule for row in contracts.contracts()}
    library = [each for each in contracts.decisions() if each.how == "overlap" and "高阶API" in each.page]
    assert len(library) > 40
    assert [each.page for each in library if rules.get(each.page) != "Apart"] == []


def test_a_page_is_read_for_one_chip() -> None:
    inner = 'b<!-- npu="950" id2 -->c<!-- end id2 -->d'
    text = f'a<!-- npu="910b,A3" id1 -->{inner}<!-- end id1 --><!-- npu="950" id3 -->e<!-- end id3 -->f'
    assert for_chip(text) == "abdf"


def test_sentences_and_names_of_a_page() -> None:
    assert names(PAGE) == {"Halve"}
    found = list(sentences("p", PAGE))
    assert [each.kind for each in found] == ["overlap", "alignment"]
    assert found[1].text == "参考通用对齐约束"


@pytest.fixture(name="checkout")
def named_checkout() -> Path:
    checkout = os.environ.get("ASC_DEVKIT")
    if not checkout:
        pytest.skip("ASC_DEVKIT names no checkout of asc-devkit")
    return Path(checkout)


def test_types_of_rows_are_those_of_their_pages(checkout: Path) -> None:
    """FusedMulAddRelu is MulAddRelu by the name of its instruction."""
    vectors = {
        path.rsplit("/", 1)[1].removesuffix(".md"): text
        for path, text in applying_pages(checkout)
        if "/Memory矢量计算/" in path
    }
    rows = contracts.element_types()
    assert set(rows) - set(vectors) == {"FusedMulAddRelu"}
    for name in sorted(set(rows) & set(vectors)):
        assert element_types(vectors[name]) == rows[name], name


def test_casts_are_rounded_as_their_page_says(checkout: Path) -> None:
    (page,) = (text for path, text in applying_pages(checkout) if path.endswith("类型转换/Cast.md"))
    ours = {pair: how for pair, how in contracts.cast_modes().items() if "int4b_t" not in pair}
    pages = {pair: modes for pair, modes in cast_rows(page).items() if "int4b_t" not in pair}
    assert set(ours) == set(pages)
    rounding = frozenset(f"CAST_{mode}" for mode in ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC"))
    modes = {"Exact": {"CAST_NONE"}, "Rounding": rounding, "RoundingOrNone": rounding | {"CAST_NONE"}}
    for pair, how in ours.items():
        assert how == "Scaled" or pages[pair] - {"CAST_ODD"} == modes[how], pair


def test_decisions_and_pages_are_in_step(checkout: Path) -> None:
    states, lines, found = contracts.report(checkout)
    assert states["new"] == 0, lines
    assert sum(states.values()) == len(contracts.decisions())
    assert found["Erf"] == "known"
