"""The forms in which models answer: each is read as it was meant, or refused for the right reason."""

import pytest
from conftest import make_candidate

from ascend_gym.core.protocols import Ending
from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind, candidate_from_answer
from ascend_gym.suite.loader import list_operators

HOST = """\
#include "register/op_def_registry.h"
constexpr uint32_t TILE = 1024;
namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    context->SetBlockDim(8);
    return ge::GRAPH_SUCCESS;
}
}
OP_ADD(Toy);
"""
KERNEL = """\
#include "kernel_operator.h"
constexpr int32_t BUFFER_NUM = 1;
class Toy {
public:
    __aicore__ inline void Process()
    {
        for (int32_t i = 0; i < tiles; i++) {
            CopyIn(i);
            Compute(i);
        }
    }
    __aicore__ inline void Compute(int32_t i)
    {
        Exp(y, x, n);
        PipeBarrier<PIPE_ALL>();
        Ln(y, y, n);
        PipeBarrier<PIPE_ALL>();
    }
};
extern "C" __global__ __aicore__ void toy(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    Toy op;
    op.Process();
}
"""
BASE = make_candidate(HOST, KERNEL)
H, K = "op_host/toy.cpp", "op_kernel/toy.cpp"
NEW = KERNEL.replace("BUFFER_NUM = 1", "BUFFER_NUM = 2")
NEW_HOST = HOST.replace("SetBlockDim(8)", "SetBlockDim(40)")
BOTH = (NEW_HOST, NEW)
ONE = (HOST, NEW)
OLD_LINE, NEW_LINE = "constexpr int32_t BUFFER_NUM = 1;", "constexpr int32_t BUFFER_NUM = 2;"
EDIT = f"<<<<<<< SEARCH\n{OLD_LINE}\n=======\n{NEW_LINE}\n>>>>>>> REPLACE\n"
HUNK = f'@@ -1,4 +1,4 @@\n #include "kernel_operator.h"\n-{OLD_LINE}\n+{NEW_LINE}\n class Toy {{\n public:\n'
INNER = HUNK.partition("\n")[2]
BARRIER = KERNEL.replace("        Ln(y, y, n);\n        PipeBarrier<PIPE_ALL>();", "        Ln(y, y, n);")
ELIDED = f'#include "kernel_operator.h"\n{NEW_LINE}\nclass Toy {{\n// ... rest unchanged\n'
PROCESS = KERNEL[
    KERNEL.index("    __aicore__ inline void Process") : KERNEL.index("    __aicore__ inline void Compute")
]


def _fence(text, language="cpp"):
    return f"```{language}\n{text}```\n"


def _edit(search, replace):
    return f"### FILE: {K}\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


def _diff(*lines):
    return f"### FILE: {K}\n" + _fence("".join(f"{line}\n" for line in lines), "diff")


def _sides(kernel):
    return (HOST, kernel)


def _numbered(text, mark):
    return "".join(f"{number:4d}{mark}{line}\n" for number, line in enumerate(text.splitlines(), 1))


def _instead_of_exp(line):
    return f"### FILE: {K}\n{_fence(NEW.replace('        Exp(y, x, n);', f'        {line}'))}"


NO_BARRIER = (
    "<<<<<<< SEARCH\n        Ln(y, y, n);\n        PipeBarrier<PIPE_ALL>();\n=======\n"
    "        Ln(y, y, n);\n>>>>>>> REPLACE\n"
)
TWO_EDITS = BARRIER.replace("BUFFER_NUM = 1", "BUFFER_NUM = 2")


FORMS = {
    # Whole files.
    "whole file": (f"### FILE: {K}\n{_fence(NEW)}", ONE),
    "both files": (f"### FILE: {H}\n{_fence(NEW_HOST)}\n### FILE: {K}\n{_fence(NEW)}", BOTH),
    "bold header": (f"**{K}**\n\n{_fence(NEW)}", ONE),
    "header (modified)": (f"### FILE: {K} (modified)\n{_fence(NEW)}", ONE),
    "path (updated) in backquotes": (f"`{K}` (updated for double buffering):\n{_fence(NEW)}", ONE),
    "File: with a remark": (f"File: {K} -- the kernel, with two buffers\n{_fence(NEW)}", ONE),
    "filename=": (f"```cpp filename={K}\n{NEW}```", ONE),
    "path in the info string": (f"```cpp:{K}\n{NEW}```", ONE),
    "path in the first comment": (_fence(f"// {K}\n{NEW}"), _sides(f"// {K}\n{NEW}")),
    "prefix ./": (f"### FILE: ./{K}\n{_fence(NEW)}", ONE),
    "prefix b/": (f"### FILE: b/{K}\n{_fence(NEW)}", ONE),
    "folders above": (f"### FILE: ops/toy/{K}\n{_fence(NEW)}", ONE),
    "prose header": (f"Here is the new version of {K}, complete:\n\n{_fence(NEW)}", ONE),
    "one unlabelled kernel": (f"I use two buffers.\n\n{_fence(NEW)}\nThis should help.", ONE),
    "both unlabelled": (f"Tiling:\n{_fence(NEW_HOST)}\nKernel:\n{_fence(NEW)}", BOTH),
    "a kernel and nothing else": (NEW, ONE),
    "headers without fences": (f"### FILE: {H}\n{NEW_HOST}\n### FILE: {K}\n{NEW}", BOTH),
    "tildes": (f"### FILE: {K}\n~~~cpp\n{NEW}~~~\n", ONE),
    "unclosed last fence": (f"### FILE: {K}\n```cpp\n{NEW}", ONE),
    "fence in a list": (
        f"1. {K}\n\n    ```cpp\n" + "".join(f"    {line}\n" for line in NEW.splitlines()) + "    ```\n",
        _sides("".join(f"{line}\n" for line in NEW.splitlines())),
    ),
    "CRLF answer": (f"### FILE: {K}\n{_fence(NEW)}".replace("\n", "\r\n"), ONE),
    "draft, then the final file": (
        f"### FILE: {K}\n{_fence(KERNEL)}\nBetter:\n### FILE: {K}\n{_fence(NEW)}",
        ONE,
    ),
    "reasoning left in the text": (
        f"<think>\n### FILE: {K}\n```\nx\n```\n</think>\n### FILE: {K}\n{_fence(NEW)}",
        ONE,
    ),
    "excerpt as explanation": (f"The loop is:\n{_fence(PROCESS)}\n### FILE: {K}\n{_fence(NEW)}", ONE),
    "in HTML details": (f"<details><summary>{K}</summary>\n\n{_fence(NEW)}\n</details>\n", ONE),
    "XML tag": (f'<file path="{K}">\n{NEW}</file>\n', ONE),
    "XML tag around a fence": (f"<file name='{K}'>\n{_fence(NEW)}</file>\n", ONE),
    "numbered headings": (f"## 1. `{H}`\n\n{_fence(NEW_HOST)}\n## 2. `{K}`\n\n{_fence(NEW)}", BOTH),
    "header between dashes": (f"--- {K} ---\n{_fence(NEW)}", ONE),
    "=== headers without fences": (f"=== {H} ===\n{NEW_HOST}\n=== {K} ===\n{NEW}", BOTH),
    "header in Chinese": (f"### 文件: `{K}`（修改后）\n{_fence(NEW)}", ONE),
    "Path: and Content:": (f"Path: {K}\nContent:\n{_fence(NEW)}", ONE),
    "backslashes": (f"### FILE: {K.replace('/', chr(92))}\n{_fence(NEW)}", ONE),
    "line numbers with bars": (f"### FILE: {K}\n{_fence(_numbered(NEW, ' | '))}", ONE),
    "line numbers with tabs": (f"### FILE: {K}\n{_fence(_numbered(NEW, chr(9)))}", ONE),
    "escaped for HTML": (
        f"### FILE: {K}\n{_fence(NEW.replace('<', '&lt;').replace('>', '&gt;'))}",
        ONE,
    ),
    "fenced once more as Markdown": (f"````markdown\n### FILE: {K}\n{_fence(NEW)}````\n", ONE),
    "closing fence behind the last line": (f"### FILE: {K}\n```cpp\n{NEW.rstrip()}```", ONE),
    "both files in one fence": (
        _fence(f"### FILE: {H}\n{NEW_HOST}\n### FILE: {K}\n{NEW}"),
        BOTH,
    ),
    "both files in one fence, by comments": (
        _fence(f"// {H}\n{NEW_HOST}\n// {K}\n{NEW}"),
        (f"// {H}\n{NEW_HOST}", f"// {K}\n{NEW}"),
    ),
    "thinking in another tag": (f"<thinking>\n```\nx\n```\n</thinking>\n### FILE: {K}\n{_fence(NEW)}", ONE),
    "reasoning that ends without a beginning": (f"So.</reasoning>### FILE: {K}\n{_fence(NEW)}", ONE),
    "a channel for what is said aloud": (
        "<|channel|>analysis<|message|>```\nx\n```<|end|><|channel|>final<|message|>"
        f"### FILE: {K}\n{_fence(NEW)}",
        ONE,
    ),
    "marks of the end of a turn": (f"### FILE: {K}\n{_fence(NEW)}<|im_end|>\n<|endoftext|>\n", ONE),
    "a mark right behind the fence": (f"### FILE: {K}\n```cpp\n{NEW}```</s>", ONE),
    "thoughts that end without a beginning": (f"Two.</think>\n### FILE: {K}\n{_fence(NEW)}", ONE),
    "a tool's line before the file": (f"TOOL: lookup Exp\n\n### FILE: {K}\n{_fence(NEW)}", ONE),
    # SEARCH/REPLACE.
    "edits with words between them": (f"### FILE: {K}\n{EDIT}\nAnd:\n{NO_BARRIER}", _sides(TWO_EDITS)),
    "several edits in a fence": (f"### FILE: {K}\n{_fence(EDIT + NO_BARRIER)}", _sides(TWO_EDITS)),
    "path in the mark": (EDIT.replace("SEARCH", f"SEARCH {K}"), ONE),
    "marks with colons": (
        f"### FILE: {K}\n{EDIT.replace('SEARCH', 'SEARCH:').replace('REPLACE', 'REPLACE:')}",
        ONE,
    ),
    "edit, then the whole file": (f"### FILE: {K}\n{EDIT}\nAll of it:\n### FILE: {K}\n{_fence(NEW)}", ONE),
    "the old file, then an edit": (f"Of {K}:\n{_fence(KERNEL)}\nI change:\n{EDIT}", ONE),
    "edit": (f"### FILE: {K}\n{EDIT}", ONE),
    "edit in a fence": (f"### FILE: {K}\n{_fence(EDIT)}", ONE),
    "6 chevrons": (f"### FILE: {K}\n{EDIT.replace('<<<<<<<', '<<<<<<').replace('>>>>>>>', '>>>>>>')}", ONE),
    "8 chevrons": (f"### FILE: {K}\n{EDIT.replace('<' * 7, '<' * 8).replace('>' * 7, '>' * 8)}", ONE),
    "8 of all": (f"### FILE: {K}\n" + EDIT.replace("<" * 7, "<" * 8).replace("=" * 7, "=" * 8), ONE),
    "lower case marks": (
        f"### FILE: {K}\n{EDIT.replace('SEARCH', 'search').replace('REPLACE', 'replace')}",
        ONE,
    ),
    "ORIGINAL and UPDATED": (
        f"{K}\n{EDIT.replace('SEARCH', 'ORIGINAL').replace('REPLACE', 'UPDATED')}",
        ONE,
    ),
    "edit without a path": (f"Two buffers:\n\n{EDIT}", ONE),
    "edit under prose": (f"In `{K}` I change one line:\n{_fence(EDIT)}", ONE),
    "fences inside an edit": (
        _edit(f"```cpp\n{OLD_LINE}\n```\n", f"```cpp\n{NEW_LINE}\n```\n"),
        ONE,
    ),
    "unclosed fence after an edit": (f"### FILE: {K}\n```\n{EDIT}", ONE),
    "indented marks": (
        f"### FILE: {K}\n{EDIT.replace('<<<<', '  <<<<').replace('>>>>>>>', '  >>>>>>>')}",
        ONE,
    ),
    "other indentation": (
        _edit("Ln(y, y, n);\nPipeBarrier<PIPE_ALL>();\n", "Ln(y, y, n);\n"),
        _sides(BARRIER),
    ),
    "tabs for blanks": (
        _edit("\t\tLn(y, y, n);\n\t\tPipeBarrier<PIPE_ALL>();\n", "\t\tLn(y, y, n);\n"),
        _sides(BARRIER),
    ),
    "other blanks": (f"### FILE: {K}\n{EDIT.replace('BUFFER_NUM = 1', 'BUFFER_NUM=1')}", ONE),
    "blank lines around": (f"### FILE: {K}\n{EDIT.replace(OLD_LINE, chr(10) + OLD_LINE + chr(10))}", ONE),
    "edits of both sides, one without header": (
        f"### FILE: {K}\n{EDIT}\n<<<<<<< SEARCH\n    context->SetBlockDim(8);\n=======\n"
        "    context->SetBlockDim(40);\n>>>>>>> REPLACE\n",
        BOTH,
    ),
    # Unified diffs.
    "git diff in a fence": (_fence(f"diff --git a/{K} b/{K}\n--- a/{K}\n+++ b/{K}\n{HUNK}", "diff"), ONE),
    "diff without a fence": (f"Here it is:\n\n--- a/{K}\n+++ b/{K}\n{HUNK}\nThat is all.\n", ONE),
    "diff under a header": (f"### FILE: {K}\n{_fence(HUNK, 'diff')}", ONE),
    "diff without hunk heads": (_diff(f"-{OLD_LINE}", f"+{NEW_LINE}"), ONE),
    "wrong line numbers": (
        f"### FILE: {K}\n{_fence(HUNK.replace('-1,4 +1,4', '-90,3 +91,7'), 'diff')}",
        ONE,
    ),
    "@@ alone": (f"### FILE: {K}\n{_fence('@@' + chr(10) + INNER, 'diff')}", ONE),
    "context without its blank": (
        f"### FILE: {K}\n{_fence(HUNK.replace(' class', 'class').replace(' public', 'public'), 'diff')}",
        ONE,
    ),
    "diff marked cpp": (f"### FILE: {K}\n{_fence(f'--- a/{K}{chr(10)}+++ b/{K}{chr(10)}{HUNK}')}", ONE),
    "Begin Patch": (f"*** Begin Patch\n*** Update File: {K}\n@@\n{INNER}*** End Patch\n", ONE),
    "diff of two files": (
        _fence(
            f"--- a/{H}\n+++ b/{H}\n@@ -6 +6 @@\n-    context->SetBlockDim(8);\n"
            f"+    context->SetBlockDim(40);\n--- a/{K}\n+++ b/{K}\n{HUNK}",
            "diff",
        ),
        BOTH,
    ),
    "elision in the context of a diff": (
        _diff("@@", f"-{OLD_LINE}", f"+{NEW_LINE}", " ...", "     Toy op;"),
        ONE,
    ),
    "a place that only the line number tells": (
        _diff("@@ -17,1 +17,0 @@", "-        PipeBarrier<PIPE_ALL>();"),
        _sides(BARRIER),
    ),
    "a class in the hunk head": (
        f"### FILE: {K}\n{_fence('@@ class Toy @@' + chr(10) + INNER, 'diff')}",
        ONE,
    ),
    # What is refused, for the right reason.
    "[rest of the code]": (_instead_of_exp("// [rest of the code]"), ProblemKind.ELIDED),
    "(same as original)": (_instead_of_exp("// (same as original)"), ProblemKind.ELIDED),
    "as before": (_instead_of_exp("// as before"), ProblemKind.ELIDED),
    "elision in Chinese": (_instead_of_exp("// 其余代码不变"), ProblemKind.ELIDED),
    "dots in a SEARCH part": (
        _edit("    {\n        ...\n    }\n", "    {\n    }\n"),
        ProblemKind.SEARCH_NOT_FOUND,
    ),
    "an edit without a SEARCH text": (_edit("", "// new\n"), ProblemKind.MALFORMED_EDIT),
    "an edit without an end": (f"### FILE: {K}\n{EDIT.partition('>>>>')[0]}", ProblemKind.TRUNCATED),
    "a command of the shell": (
        f"```bash\nsed -i 's/BUFFER_NUM = 1/BUFFER_NUM = 2/' {K}\n```\n",
        ProblemKind.NO_FILES,
    ),
    "lines before and after": (
        f"In {K}, before:\n{_fence(OLD_LINE)}After:\n{_fence(NEW_LINE)}",
        ProblemKind.NO_FILES,
    ),
    "elided file": (f"### FILE: {K}\n{_fence(ELIDED)}", ProblemKind.ELIDED),
    "existing code ...": (
        f"### FILE: {K}\n{_fence(NEW.replace('        Exp(y, x, n);', '        // existing code ...'))}",
        ProblemKind.ELIDED,
    ),
    "dots alone": (
        f"### FILE: {K}\n{_fence(NEW.replace('        Exp(y, x, n);', '        ...'))}",
        ProblemKind.ELIDED,
    ),
    "same as before": (
        f"### FILE: {K}\n{_fence(NEW.replace('    Toy op;', '    /* remains the same */'))}",
        ProblemKind.ELIDED,
    ),
    "elision in a REPLACE part": (
        f"### FILE: {K}\n{EDIT.replace(NEW_LINE, NEW_LINE + chr(10) + '// ... other constants unchanged')}",
        ProblemKind.ELIDED,
    ),
    "one function under the path": (f"### FILE: {K}\n{_fence(PROCESS)}", ProblemKind.PARTIAL_FILE),
    "one function without a path": (f"Change it so:\n{_fence(PROCESS)}", ProblemKind.NO_FILES),
    "new file": (f"### FILE: op_kernel/helper.h\n{_fence('int x;' + chr(10))}", ProblemKind.UNKNOWN_PATH),
    "new file by diff": (
        _fence("--- /dev/null\n+++ b/op_kernel/helper.h\n@@ -0,0 +1 @@\n+int x;\n", "diff"),
        ProblemKind.UNKNOWN_PATH,
    ),
    "file deleted by diff": (
        _fence(f"--- a/{K}\n+++ /dev/null\n@@ -1 +0,0 @@\n-int x;\n", "diff"),
        ProblemKind.MALFORMED_EDIT,
    ),
    "a diff that does not fit": (
        f"### FILE: {K}\n{_fence(HUNK.replace('BUFFER_NUM = 1', 'BUFFER_NUM = 7'), 'diff')}",
        ProblemKind.SEARCH_NOT_FOUND,
    ),
    "a line of several": (
        _edit("        PipeBarrier<PIPE_ALL>();\n", ""),
        ProblemKind.SEARCH_AMBIGUOUS,
    ),
    "cut off inside a file": (f"### FILE: {K}\n```cpp\n{NEW[:300]}", ProblemKind.TRUNCATED),
    "cut off inside a diff": (f"### FILE: {K}\n```diff\n{HUNK[:90]}", ProblemKind.TRUNCATED),
    "words": ("I would use double buffering in op_kernel/toy.cpp.", ProblemKind.NO_FILES),
    "unchanged": (f"### FILE: {K}\n{_fence(KERNEL)}", ProblemKind.NO_CHANGE),
}


def test_the_table_has_at_least_ninety_forms():
    assert len(FORMS) >= 90


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_as_meant(name):
    answer, meant = FORMS[name]
    found = candidate_from_answer(answer, BASE)
    if isinstance(meant, ProblemKind):
        assert isinstance(found, ParseProblem), found.kernel_text
        assert found.kind is meant, found
    else:
        assert isinstance(found, Candidate), found
        assert (found.tiling_text, found.kernel_text) == meant


@pytest.mark.parametrize("name", FORMS)
def test_an_answer_cut_off_at_the_token_limit_is_never_taken(name):
    found = candidate_from_answer(FORMS[name][0], BASE, ending=Ending.TOKEN_LIMIT)
    assert isinstance(found, ParseProblem)
    assert found.kind is ProblemKind.TRUNCATED
    assert "token limit" in found.message


@pytest.mark.parametrize(
    ("ending", "kind", "words"),
    [
        (Ending.COMPLETE, ProblemKind.EMPTY, "the answer is empty"),
        (Ending.TOKEN_LIMIT, ProblemKind.TOKEN_LIMIT, "used up its tokens before it answered"),
        (Ending.REFUSED, ProblemKind.REFUSED, "refused"),
    ],
)
@pytest.mark.parametrize("answer", ["", " \n", "<think>\nLet me see"])
def test_an_empty_answer_says_why_it_is_empty(answer, ending, kind, words):
    found = candidate_from_answer(answer, BASE, ending=ending)
    assert isinstance(found, ParseProblem)
    assert found.kind is kind
    assert words in found.message


def test_a_refusal_is_told_in_the_models_words_and_a_filtered_but_whole_answer_counts():
    found = candidate_from_answer("I can't help with that.", BASE, ending=Ending.REFUSED)
    assert isinstance(found, ParseProblem)
    assert found.kind is ProblemKind.REFUSED
    assert "I can't help with that." in found.message
    assert isinstance(candidate_from_answer(FORMS["edit"][0], BASE, ending=Ending.REFUSED), Candidate)


@pytest.mark.parametrize(
    "line",
    [
        "// load the tile, compute, store ...",
        "// the rest of the tile is masked",
        "// same number of repeats for all rows",
        "// unchanged values need no copy",
        "/* ... and now the tail */ int tail = 0;",
        "for (...) {",
        "// keep the remaining rows in UB",
        "// the rest is less than a block",
        "// as above, for the other half of the row",
    ],
)
def test_comments_that_explain_code_are_no_elisions(line):
    answer = f"### FILE: {K}\n{_fence(NEW.replace('    Toy op;', f'    {line}{chr(10)}    Toy op;'))}"
    found = candidate_from_answer(answer, BASE)
    assert isinstance(found, Candidate), found


def test_a_comment_with_dots_that_the_file_had_is_no_elision():
    base = make_candidate(HOST, KERNEL.replace("    Toy op;", "    // ... rest unchanged\n    Toy op;"))
    answer = f"### FILE: {K}\n{_fence(base.kernel_text.replace('BUFFER_NUM = 1', 'BUFFER_NUM = 2'))}"
    assert isinstance(candidate_from_answer(answer, base), Candidate)


def test_a_search_that_is_not_found_names_the_nearest_place():
    answer = f"### FILE: {K}\n{EDIT.replace('BUFFER_NUM = 1', 'BUFFER_NUM = 3')}"
    found = candidate_from_answer(answer, BASE)
    assert isinstance(found, ParseProblem)
    assert f"line 2 is the most like it: {OLD_LINE!r}" in found.message
    two = _edit("        Exp(y, x, n);\n        Ln(y, y, n);\n", "")
    found = candidate_from_answer(two, BASE)
    assert "'Ln(y, y, n);' is 'PipeBarrier<PIPE_ALL>();' there" in found.message


@pytest.mark.parametrize("spec", list_operators("core"), ids=lambda spec: spec.op_id)
def test_files_of_the_suite_are_known_without_a_path_and_without_a_last_fence(spec):
    for path, text in spec.baseline.texts.items():
        new = text.replace("{\n", "{\n    // changed\n", 1)
        assert new != text
        for answer in (_fence(new), f"### FILE: {path}\n```cpp\n{new}"):
            found = candidate_from_answer(answer, spec.baseline)
            assert isinstance(found, Candidate), found
            assert found.texts == {**spec.baseline.texts, path: new}
        half = "".join(new.splitlines(keepends=True)[: new.count("\n") // 2])
        found = candidate_from_answer(f"### FILE: {path}\n{_fence(half)}", spec.baseline)
        assert isinstance(found, ParseProblem)
        assert found.kind is ProblemKind.PARTIAL_FILE


def test_an_answer_without_changes_is_told_both_forms():
    problem = candidate_from_answer("I would use larger tiles.", BASE)
    assert isinstance(problem, ParseProblem)
    assert "each a fenced whole file or SEARCH/REPLACE edits" in problem.message


def test_an_answer_that_goes_round_in_circles_is_told_so():
    answer = f"### FILE: {K}\n```cpp\n" + "        Exp(y, x, n);\n        Ln(y, y, n);\n" * 60
    problem = candidate_from_answer(answer, BASE, ending=Ending.TOKEN_LIMIT)
    assert problem.kind is ProblemKind.TRUNCATED
    assert "the answer repeated itself" in problem.message
    other = candidate_from_answer(f"### FILE: {K}\n```cpp\n{KERNEL}", BASE, ending=Ending.TOKEN_LIMIT)
    assert "give edits in place of whole files, or a shorter change" in other.message
