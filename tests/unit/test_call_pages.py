"""Decisions about sentences of pages: against each other and, with ASC_DEVKIT set, against asc-devkit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npu_daemon.simulator import contracts
from npu_daemon.simulator.call_pages import for_chip, names, sentences

PAGE = """# Halve
## 函数原型
```cpp
__aicore__ inline void Halve(const LocalTensor<T>& dst)
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


def test_decisions_and_pages_are_in_step() -> None:
    checkout = os.environ.get("ASC_DEVKIT")
    if not checkout:
        pytest.skip("ASC_DEVKIT names no checkout of asc-devkit")
    states, lines, found = contracts.report(Path(checkout))
    assert states["new"] == 0, lines
    assert sum(states.values()) == len(contracts.decisions())
    assert found["Erf"] == "known"
