"""Answers of models, good and bad, become candidates or problems that say what is wrong."""

import pytest
from conftest import make_candidate

from ascend_gym.core.records import Candidate, SourceFile, Sources
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind, candidate_from_answer, render_edits
from ascend_gym.rewrites.fenced import render_file, sections

TILING = "constexpr int TILE = 8;\nint a;\n"
KERNEL = "int one;\nint two;\nint three;\nint two;\n"
BASE = make_candidate(TILING, KERNEL)
HEAD = "### FILE: op_kernel/toy.cpp\n"


def _edit(search, replace):
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


GOOD = {
    "whole file": HEAD + "```cpp\nint other;\n```\n",
    "no heading mark": "op_kernel/toy.cpp\n```\nint other;\n```",
    "bold heading and prose": "First:\n**FILE: `op_kernel/toy.cpp`**\nNow:\n\n```c++\nint other;\n```\nEnd.",
    "path after the fence": "```cpp op_kernel/toy.cpp\nint other;\n```",
    "path in the info string": "```cpp:op_kernel/toy.cpp\nint other;\n```",
    "path in a comment": "```cpp\n// FILE: op_kernel/toy.cpp\nint other;\n```",
    "heading inside the fence": "```cpp\n### FILE: op_kernel/toy.cpp\nint other;\n```",
    "file name alone": "### FILE: ./op_kernel/toy.cpp\n~~~\nint other;\n~~~",
    "longer fence": HEAD + "````cpp\n// ``` inside\nint other;\n````\n",
    "snippet without a path": "Before:\n```cpp\nint x;\n```\n"
    + HEAD
    + "```cpp\nint other;\n```\n```\nnot this\n```",
}


@pytest.mark.parametrize("answer", GOOD.values(), ids=GOOD.keys())
def test_whole_files_are_found_in_any_dress(answer):
    candidate = candidate_from_answer(answer, BASE)
    assert isinstance(candidate, Candidate), candidate
    assert candidate.kernel_text.endswith("int other;\n")
    assert candidate.tiling_text == TILING


EDITS = {
    "bare": HEAD + _edit("int one;", "int uno;"),
    "fenced": HEAD + "```\n" + _edit("int one;", "int uno;") + "```\n",
    "trailing blanks": HEAD + _edit("int one;  ", "int uno;"),
    "context": HEAD + _edit("int one;\nint two;\nint three;", "int uno;\nint two;\nint three;"),
}


@pytest.mark.parametrize("answer", EDITS.values(), ids=EDITS.keys())
def test_edits_apply_in_any_dress(answer):
    candidate = candidate_from_answer(answer, BASE)
    assert isinstance(candidate, Candidate), candidate
    assert candidate.kernel_text == KERNEL.replace("one", "uno")


def test_edits_apply_one_after_the_other_and_to_both_sides():
    answer = (
        HEAD
        + _edit("int one;", "int uno;")
        + "and then\n"
        + _edit("int uno;\nint two;", "")
        + "### FILE: op_host/toy.cpp\n"
        + _edit("constexpr int TILE = 8;", "constexpr int TILE = 16;")
    )
    candidate = candidate_from_answer(answer, BASE)
    assert isinstance(candidate, Candidate), candidate
    assert candidate.kernel_text == "\nint three;\nint two;\n"
    assert candidate.tiling_text == TILING.replace("8", "16")


BAD = [
    ("", ProblemKind.EMPTY, "empty"),
    ("  \n ", ProblemKind.EMPTY, "empty"),
    ("I am sorry, I cannot help with that.", ProblemKind.NO_FILES, "### FILE"),
    ("```cpp\nint other;\n```", ProblemKind.NO_FILES, "### FILE"),
    (_edit("int two;", "int uno;"), ProblemKind.NO_FILES, "### FILE"),
    (HEAD + "```cpp\nint one;\n// ... rest unchanged\n```", ProblemKind.ELIDED, "line 2"),
    ("### FILE: op_kernel/new.h\n```\nint x;\n```", ProblemKind.UNKNOWN_PATH, "op_kernel/new.h"),
    ("### FILE: ../../etc/shadow.h\n```\nint x;\n```", ProblemKind.UNKNOWN_PATH, "shadow.h"),
    (HEAD + "I would make it faster;\n", ProblemKind.NO_FILES, "### FILE"),
    (HEAD + "int other;\n", ProblemKind.NO_FILES, "### FILE"),
    (HEAD + "```cpp\nint oth", ProblemKind.TRUNCATED, "cut off"),
    (HEAD + "<<<<<<< SEARCH\nint one;\n=======\nint u", ProblemKind.TRUNCATED, "cut off"),
    (HEAD + "```\n<<<<<<< SEARCH\nint one;\n=======\nint uno;\n```", ProblemKind.MALFORMED_EDIT, "missing"),
    (HEAD + "<<<<<<< SEARCH\nint one;\n>>>>>>> REPLACE\n", ProblemKind.MALFORMED_EDIT, "order"),
    (HEAD + _edit("", "int uno;"), ProblemKind.MALFORMED_EDIT, "empty"),
    (HEAD + _edit("int four;", "int x;"), ProblemKind.SEARCH_NOT_FOUND, "'int four;' occurs 0 times"),
    (HEAD + _edit("int two;", "int x;"), ProblemKind.SEARCH_AMBIGUOUS, "'int two;' occurs 2 times"),
    (HEAD + "```cpp\n" + KERNEL + "```\n", ProblemKind.NO_CHANGE, "as it was"),
    (HEAD + _edit("int one;", "int one;"), ProblemKind.NO_CHANGE, "as it was"),
]


@pytest.mark.parametrize(("answer", "kind", "message"), BAD)
def test_bad_answers_are_problems_that_say_what_is_wrong(answer, kind, message):
    problem = candidate_from_answer(answer, BASE)
    assert isinstance(problem, ParseProblem)
    assert problem.kind is kind
    assert message in problem.message
    assert kind.value in str(problem)


def test_every_kind_of_problem_is_tested():
    by_whoever_asked = {
        ProblemKind.FORBIDDEN_EDIT,
        ProblemKind.INCOMPLETE,
        ProblemKind.UNKNOWN_BASE,
        ProblemKind.REPEATED,
    }
    elsewhere = {ProblemKind.TOKEN_LIMIT, ProblemKind.REFUSED, ProblemKind.PARTIAL_FILE}
    assert {kind for _, kind, _ in BAD} == set(ProblemKind) - by_whoever_asked - elsewhere


def test_a_file_name_alone_is_enough_when_it_is_unique():
    host = BASE.host
    kernel = Sources(
        files=(*BASE.kernel.files, SourceFile(path="op_kernel/base.h", text="int x;\n")),
        main=BASE.kernel.main,
    )
    base = Candidate(host=host, kernel=kernel)
    candidate = candidate_from_answer("### FILE: base.h\n```\nint y;\n```", base)
    assert isinstance(candidate, Candidate), candidate
    assert candidate.kernel.files[1].text == "int y;\n"
    both_named_so = candidate_from_answer("### FILE: toy.cpp\n```\nint y;\n```", base)
    assert isinstance(both_named_so, ParseProblem)
    assert both_named_so.kind is ProblemKind.UNKNOWN_PATH


def test_rendered_edits_are_short_when_the_change_is():
    text = "".join(f"line {number};\n" for number in range(200))
    rendered = render_edits("op_kernel/toy.cpp", text, text.replace("line 100;", "line hundred;"))
    assert rendered.count("\n") == 18
    assert "+" not in rendered


def test_rendered_edits_fall_back_to_the_whole_file_where_nothing_is_unique():
    text = "x;\n" * 100
    changed = "x;\n" * 50 + "y;\n" + "x;\n" * 50
    rendered = render_edits("op_kernel/toy.cpp", text, changed)
    assert rendered == render_file("op_kernel/toy.cpp", changed)


def test_a_missing_last_newline_is_added_in_a_fence():
    (section,) = sections(render_file("op_kernel/toy.cpp", "int x;"))
    assert section.body == "int x;\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_files_without_a_last_newline_or_with_other_line_ends_can_be_edited(newline, end):
    text = f"int a;{newline}int b;{end}"
    base = make_candidate(kernel=text, tiling=text)
    (shown,) = sections(render_file("op_kernel/toy.cpp", text))
    answer = render_edits("op_kernel/toy.cpp", shown.body, shown.body.replace("int a", "int c"))
    candidate = candidate_from_answer(answer, base)
    assert isinstance(candidate, Candidate), candidate
    assert candidate.kernel_text == f"int c;{newline}int b;\n"
    assert candidate.tiling_text == text
    same = candidate_from_answer(render_file("op_kernel/toy.cpp", text), base)
    assert isinstance(same, ParseProblem)
    assert same.kind is ProblemKind.NO_CHANGE
