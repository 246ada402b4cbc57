"""What pages of calls demand, as the simulator declares it: ``instructions.def`` and ``contracts.def``.

``python -m npu_daemon.simulator.contracts --asc-devkit DIR`` reads the pages of a checkout and lists
what becomes of each sentence of constraint, and which names of calls are known.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from npu_daemon.simulator.call_pages import applying_pages, names, sentences

DECISIONS = Path(__file__).with_name("page_constraints.csv")
STATES = ("enforced", "warned", "waived", "open")
HOW = {
    # enforced
    "alignment": "start addresses are checked for the memory that they lie in",
    "overlap": "instructions.def or contracts.def",
    "scratch": "a temporary buffer may hold no operand",
    "bounds": "what lies outside of a tensor's memory is a fault",
    "bursts": "a copy has at most 4095 bursts",
    "range": "a row RANGE of contracts.def, or a check of the call",
    "type": "the type of the parameter holds nothing else, or the call does not compile",
    "space": "the memory of each operand is checked",
    "races": "the race check orders copies of one pipe by barriers only",
    "poison": "padding that nobody wrote holds poison, which reruns tell",
    "does as told": "the sentence says what the call does there, and it does that",
    # warned
    "tail": "a warning tells what is left out",
    # waived
    "family": "collective communication, convolutions and debugging on a CPU are not simulated",
    "unknown call": "the call is not simulated: kernels with it do not compile",
    "one device": "links between devices: a launch uses one",
    "heading": "heading of a table whose rows are sentences of their own",
    "permission": "allows something, and is held by the rules of its call",
    "performance": "advice about speed, or told without saying what may not be",
    "may": "says that results may be wrong; operators in use rely on it",
    "output for people": "prints, dumps and marks are no part of a result",
    "way of building": "launches and graphs outside of a kernel",
    "no formats": "a tensor has no format beside its call here",
    "values": "about values, for which the call gives what its function gives",
    "no such parameter": "the call has no parameter that could ask for it",
    "always so": "holds on this chip whatever the kernel does",
    "advice": "advice, or what the library takes for itself",
    "unknown form": "a form of the call that ends as build_error or unsupported",
    "": "not looked into",
}
_FAMILIES = ("HCCL通信类", "卷积计算", "CPU孪生调试")  # not simulated, and not counted among names
_PARTLY = frozenset(  # some of their documented forms end as `unsupported`, or do not compile
    {
        *("Transpose", "ConfusionTranspose", "Mmad", "LoadData", "Fixpipe", "IBSet", "IBWait"),
        *("NotifyNextBlock", "WaitPreBlock", "InitDetermineComputeWorkspace"),
        *("IterateBatch", "SetTensorA", "SetTensorB", "TensorTrait"),
        *("SetSaturationFlag", "SetCtrlSpr"),
    }
)
_ABSENT = {  # on Atlas A2, though the pages leave their prototypes in
    "GetBroadcastTilingInfo": "its page has it for Ascend 950 alone, in a note above the prototype",
}
_ON_A_CPU = re.compile("只限于CPU调试|只在CPU调试场景")  # pages of calls that do nothing on a device
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_INCLUDE = Path(__file__).with_name("include") / "asim"
_INSTRUCTION = re.compile(r"^INSTRUCTION\((\w+), \w+, \w+, (\w+)\)$", re.MULTILINE)
_ELEMENTWISE = re.compile(r"^ELEMENTWISE\((\w+), \w+, \w+, (\w+), ", re.MULTILINE)
_TYPE_LIST = re.compile(r"^using (\w+) = TypeList<([^>]*)>;", re.MULTILINE)
_CAST_LIST = re.compile(r"^using (\w+)Casts = TypeList<([^;]*)>;", re.MULTILINE)
_CAST_PAIR = re.compile(r"CastPair<(\w+), (\w+)>")
_CONTRACT = re.compile(r'^CONTRACT\((\w+), "([^"]+)", (\w+), "([^"]+)"\)$', re.MULTILINE)
_RANGE = re.compile(r'^RANGE\((\w+), "([^"]+)", "([^"]+)", (\d+), (\d+), (\d+), "([^"]+)"\)$', re.MULTILINE)


class OverlapRow(NamedTuple):
    """How the result of a call may lie over what it reads.

    Attributes:
        name: of the row.
        call: as faults name it.
        rule: "Same", "Behind", "Apart" or "Free", as the head of ``instructions.def`` explains them.
        page: below ``docs/zh/api/SIMD-API`` of asc-devkit; empty for instructions.
    """

    name: str
    call: str
    rule: str
    page: str = ""


class NumberRange(NamedTuple):
    """What a number that a call is given may be: from ``least`` to ``most``, in steps of ``multiple``."""

    name: str
    call: str
    parameter: str
    least: int
    most: int
    multiple: int
    page: str


def contracts() -> list[OverlapRow]:
    """Return the rows of library calls."""
    return [OverlapRow(*found) for found in _CONTRACT.findall(_text("check/contracts.def"))]


def ranges() -> list[NumberRange]:
    """Return the numbers that pages bound."""
    rows = _RANGE.findall(_text("check/contracts.def"))
    return [
        NumberRange(name, call, parameter, int(least), int(most), int(multiple), page)
        for name, call, parameter, least, most, multiple, page in rows
    ]


def instruction_overlaps() -> list[OverlapRow]:
    """Return the rows of instructions."""
    text = _text("trace/instructions.def")
    plain = [OverlapRow(name, name, rule) for name, rule in _INSTRUCTION.findall(text)]
    return [*plain, *(OverlapRow(name, name, "Same") for name, _ in _ELEMENTWISE.findall(text))]


def element_types() -> dict[str, frozenset[str]]:
    """Return the element types of each element-wise instruction."""
    lists = {
        name: frozenset(each.strip() for each in types.split(","))
        for name, types in _TYPE_LIST.findall(_text("semantics/vector.h"))
    }
    return {name: lists[types] for name, types in _ELEMENTWISE.findall(_text("trace/instructions.def"))}


def cast_modes() -> dict[tuple[str, str], str]:
    """Return how each pair of source and result type of Cast is rounded.

    "Exact" takes CAST_NONE alone, "Rounding" all others but CAST_ODD, "RoundingOrNone" both, "Scaled" any.
    """
    return {
        (source, result): how
        for how, pairs in _CAST_LIST.findall(_text("semantics/cast.h"))
        for result, source in _CAST_PAIR.findall(pairs)
    }


def _text(path: str) -> str:
    return (_INCLUDE / path).read_text(encoding="utf-8")


class PageDecision(NamedTuple):
    """What becomes of a sentence: ``state`` of ``STATES``, and ``how``, a key of ``HOW``."""

    page: str
    digest: str
    kind: str
    state: str
    how: str


def decisions() -> list[PageDecision]:
    """Return the rows of ``page_constraints.csv``."""
    with DECISIONS.open(encoding="utf-8", newline="") as file:
        return [PageDecision(*row) for row in list(csv.reader(file))[1:]]


def known_words() -> frozenset[str]:
    """Return every identifier of the headers that kernels and tiling programs are compiled against."""
    headers = (path for path in _INCLUDE.parent.rglob("*") if path.suffix in (".h", ".def"))
    return frozenset(
        word
        for path in headers
        for line in path.read_text(encoding="utf-8").splitlines()
        if not line.lstrip().startswith("//")
        for word in _WORD.findall(line)
    )


def report(checkout: Path) -> tuple[Counter[str], list[str], dict[str, str]]:
    """Compare the pages of a checkout with what is declared.

    Args:
        checkout: of asc-devkit.

    Returns:
        Sentences by state ("new" where there is no decision), a line for each that is open or new, and for
        each name "known", "partly", "not", or "absent" from this chip.
    """
    decided = {(each.page, each.digest): each for each in decisions()}
    words, states, lines, found = known_words(), Counter[str](), [], dict[str, str]()
    for page, text in applying_pages(checkout):
        for sentence in sentences(page, text):
            decision = decided.get((page, sentence.digest))
            state = decision.state if decision else "new"
            states[state] += 1
            if state in ("open", "new"):
                lines.append(f"{state}\t{sentence.kind}\t{page}\t{sentence.text}")
        if not any(family in page for family in _FAMILIES) and _ON_A_CPU.search(text) is None:
            for name in names(text):
                unknown = "absent" if name in _ABSENT else "not"
                found[name] = unknown if name not in words else "partly" if name in _PARTLY else "known"
    return states, lines, found


def main() -> None:
    """Print what ``report`` finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asc-devkit", type=Path, required=True, help="checkout of asc-devkit")
    parser.add_argument("--all", action="store_true", help="list every sentence that is open, and every name")
    options = parser.parse_args()
    states, lines, found = report(options.asc_devkit)
    total = sum(states.values())
    if total == 0:
        parser.error(
            f"{options.asc_devkit} has no pages of calls: expected a checkout of asc-devkit with docs/zh/api"
        )
    print("sentences:", total, *(f"{state} {count}" for state, count in states.most_common()))
    told = Counter(found.values())
    print("names:", len(found), *(f"{state} {count}" for state, count in told.most_common()))
    if options.all:
        print(*lines, sep="\n")
        print(*(f"{state}\t{name}" for name, state in sorted(found.items()) if state != "known"), sep="\n")


if __name__ == "__main__":
    main()
