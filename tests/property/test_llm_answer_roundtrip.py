"""What is rendered is read back, and nothing that a model writes raises."""

from conftest import make_candidate
from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.answer import ParseProblem, candidate_from_answer, render_edits
from ascend_gym.rewrites.fenced import render_file, sections

_LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "}", "int x;", "    return;", "```", "````", "// 块", "a\r"]),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=8),
    ),
    min_size=1,
    max_size=30,
)
_TEXTS = _LINES.map(lambda lines: "".join(f"{line}\n" for line in lines))
_MARKS = [
    "<<<<<<< SEARCH",
    "=======",
    ">>>>>>> REPLACE",
    "```cpp",
    "```",
    "### FILE: op_kernel/toy.cpp",
    "int one;",
    "```diff",
    "--- a/op_kernel/toy.cpp",
    "+++ b/op_kernel/toy.cpp",
    "+++ /dev/null",
    "@@ -1,2 +1,2 @@",
    "@@",
    "-int one;",
    "+int uno;",
    "*** Begin Patch",
    "*** Update File: op_kernel/toy.cpp",
    "*** Delete File: op_kernel/toy.cpp",
    "<<<<<< SEARCH",
    "// ... rest unchanged",
    "In op_kernel/toy.cpp:",
]


@given(_TEXTS)
def test_a_rendered_file_is_read_back(text):
    (section,) = sections("Some words.\n" + render_file("op_kernel/toy.cpp", text) + "More words.\n")
    assert section.path == "op_kernel/toy.cpp"
    assert section.closed
    assert section.body == text


@given(_TEXTS, _TEXTS)
def test_rendered_edits_turn_one_text_into_the_other(old, new):
    base = make_candidate(kernel=old)
    candidate = candidate_from_answer("Because.\n\n" + render_edits("op_kernel/toy.cpp", old, new), base)
    if old == new:
        assert isinstance(candidate, ParseProblem)
    else:
        assert isinstance(candidate, Candidate), candidate
        assert candidate.kernel_text == new


@given(st.lists(st.one_of(st.sampled_from(_MARKS), st.text(max_size=10)), max_size=20))
def test_no_answer_raises(lines):
    base = make_candidate(kernel="int one;\nint two;\n")
    answer = candidate_from_answer("\n".join(lines), base)
    assert isinstance(answer, Candidate | ParseProblem)
