"""Answers that build upon earlier versions: the base that they name, and files that they take from others."""

import pytest
from conftest import make_candidate

from ascend_gym.core.protocols import Ending
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind
from ascend_gym.rewrites.bases import ORIGINAL, Combined, combined_from_answer

SHOWN = make_candidate("int tiling = 5;\n", "int kernel = 5;\n")
VERSIONS = {
    ORIGINAL: make_candidate("int tiling = 0;\n", "int kernel = 0;\n"),
    3: make_candidate("int tiling = 3;\n", "int kernel = 3;\n"),
    12: make_candidate("int tiling = 12;\n", "int kernel = 12;\n"),
}
H, K = "op_host/toy.cpp", "op_kernel/toy.cpp"


def _edit(old, new, path=K):
    return f"### FILE: {path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("answer", "tiling", "kernel", "base"),
    [
        (_edit("int kernel = 5;", "int kernel = 6;"), 5, 6, None),
        ("BASE: attempt 3\n" + _edit("int kernel = 3;", "int kernel = 6;"), 3, 6, 3),
        ("Why.\n\n**BASE: attempt 12**\n\n" + _edit("int kernel = 12;", "int kernel = 6;"), 12, 6, 12),
        ("`BASE: original`\n" + _edit("int kernel = 0;", "int kernel = 6;"), 0, 6, ORIGINAL),
        (f"TAKE: {H} FROM attempt 3\n" + _edit("int kernel = 5;", "int kernel = 6;"), 3, 6, None),
        (f"BASE: attempt 12\nTAKE: {H} FROM attempt 3\n", 3, 12, 12),
        (f"- TAKE: `{H}` from attempt 12\n- TAKE: toy.cpp from attempt 3", None, None, None),
        (f"BASE: attempt 3\n**{K}**\n```cpp\nint kernel = 6;\n```\n", 3, 6, 3),
        ("<think>BASE: attempt 12</think>BASE: 3\n" + _edit("int kernel = 3;", "int kernel = 6;"), 3, 6, 3),
    ],
)
def test_edits_apply_to_the_version_that_is_named(answer, tiling, kernel, base):
    combined = combined_from_answer(answer, SHOWN, VERSIONS)
    if tiling is None:  # toy.cpp is the name of two files
        assert isinstance(combined, ParseProblem)
        assert combined.kind is ProblemKind.UNKNOWN_PATH
        return
    assert isinstance(combined, Combined), combined
    texts = combined.candidate.texts
    assert (texts[H], texts[K]) == (f"int tiling = {tiling};\n", f"int kernel = {kernel};\n")
    assert combined.base == base


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ("BASE: attempt 4\n" + _edit("a", "b"), ProblemKind.UNKNOWN_BASE, "N out of original, 3, 12"),
        ("BASE: attempt 3\nBASE: attempt 12\n" + _edit("a", "b"), ProblemKind.UNKNOWN_BASE, "two bases"),
        (f"TAKE: op_host/other.cpp FROM attempt 3\n{_edit('a', 'b')}", ProblemKind.UNKNOWN_PATH, "other.cpp"),
        ("BASE: attempt 3\n" + _edit("int kernel = 5;", "x"), ProblemKind.SEARCH_NOT_FOUND, "occurs 0 times"),
        (f"TAKE: {H} FROM attempt 7", ProblemKind.UNKNOWN_BASE, "no attempt 7"),
    ],
)
def test_what_cannot_be_built_upon_is_refused_with_what_there_is(answer, kind, said):
    problem = combined_from_answer(answer, SHOWN, VERSIONS)
    assert isinstance(problem, ParseProblem)
    assert (problem.kind, said in problem.message) == (kind, True), problem


def test_a_combination_that_is_the_version_shown_is_no_change():
    problem = combined_from_answer("BASE: attempt 1", SHOWN, {1: SHOWN})
    assert isinstance(problem, ParseProblem)
    assert problem.kind is ProblemKind.NO_CHANGE


def test_lines_inside_code_are_code():
    answer = f"### FILE: {K}\n```cpp\nint kernel = 6;\n// BASE: attempt 3\n```\n"
    combined = combined_from_answer(answer, SHOWN, VERSIONS)
    assert isinstance(combined, Combined)
    assert combined.base is None
    assert combined.candidate.texts[H] == SHOWN.texts[H]


def test_an_answer_cut_off_is_no_base_alone():
    problem = combined_from_answer("BASE: attempt 3\nand", SHOWN, VERSIONS, ending=Ending.TOKEN_LIMIT)
    assert isinstance(problem, ParseProblem)
    assert problem.kind is ProblemKind.TRUNCATED
