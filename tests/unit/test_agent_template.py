"""Evolution markers, the template's proof by comparison or evaluation, and what a stage may edit."""

import pytest
from conftest import FakeEvaluator, make_candidate, make_spec, ok_result

from agents.ascend_optimizer.incumbent import Incumbent
from agents.ascend_optimizer.markers import (
    has_blocks,
    same_code,
    same_outside_blocks,
    unmarked,
)
from agents.ascend_optimizer.refine import only_shared_constants_differ
from agents.ascend_optimizer.template import behaves_alike, synthesize_template, whole_function_marked
from ascend_gym.core.cpp_text import code_tokens
from ascend_gym.core.protocols import Completion
from ascend_gym.core.records import Launch, MeasureProtocol
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.rewrites.evolve_blocks import END, START
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.requests import request_for

TILING = """\
constexpr int TILE = 8;
static int TilingFunc(gert::TilingContext* context)
{
    return TILE;
}
"""
SPEC = make_spec(tiling=TILING)


class OneAnswer:
    """A model that says one thing."""

    def __init__(self, text):
        self.text = text

    def complete(self, messages, **options):
        return Completion(self.text, 1, 1, "one")


def _result(candidate, latency_us=100.0, block_dim=8):
    result = ok_result(request_for(SPEC, candidate, MeasureProtocol()), latency_us)
    launch = Launch(block_dim=block_dim, tiling_key=1, workspace_bytes=0, tiling_data_bytes=8)
    cases = tuple(case.model_copy(update={"launch": launch}) for case in result.cases)
    return result.model_copy(update={"cases": cases})


def _whole_host(text):
    return f"### FILE: op_host/toy.cpp\n```cpp\n{text}```\n"


def _synthesized(answer, result=None):
    """Return the template and how many evaluations it took, as it says; each call is told once."""
    untold = []
    start = Incumbent(SPEC.baseline, _result(SPEC.baseline))
    steps = synthesize_template(SPEC, start, ModelClient(OneAnswer(answer), seed=0), untold)
    spent = 0
    try:
        proposal = next(steps)
        while True:
            spent += 1
            proposal = steps.send(result or _result(proposal.candidate))
    except StopIteration as stop:
        template, told = stop.value
        assert told == spent == int(not untold)
        return template, spent


def test_a_template_with_comments_alone_costs_nothing():
    marked = f"{START}\n// the tile\n{TILING.replace('{', '{  ')}{END}\n"
    template, spent = _synthesized(_whole_host(marked))
    assert spent == 0
    assert template.candidate.tiling_text == marked
    assert "EVOLVE" not in unmarked(template.candidate).tiling_text


REWRITTEN = f"{START}\n{TILING.replace('return TILE', 'const int tile = TILE; return tile')}{END}\n"


def test_a_rewritten_template_is_evaluated_and_kept_if_it_behaves_alike():
    template, spent = _synthesized(_whole_host(REWRITTEN))
    assert spent == 1
    assert template.candidate.tiling_text == REWRITTEN


@pytest.mark.parametrize(
    "result",
    [
        _result(SPEC.baseline, 99.0),
        _result(SPEC.baseline, block_dim=9),
        FakeEvaluator()._answer(
            0, request_for(SPEC, make_candidate("// status: timeout"), MeasureProtocol())
        ),
    ],
    ids=["faster", "another launch", "failed"],
)
def test_a_template_that_behaves_differently_falls_back_to_the_whole_function(result):
    template, spent = _synthesized(_whole_host(REWRITTEN), result)
    assert spent == 1
    assert template.candidate == whole_function_marked(SPEC.baseline)
    assert not behaves_alike(result, _result(SPEC.baseline))


@pytest.mark.parametrize(
    "answer",
    ["", "no", _whole_host(TILING + "// x\n"), _whole_host(f"{END}\n{TILING}{START}\n"), _whole_host(START)],
)
def test_an_answer_without_markers_falls_back_and_costs_nothing(answer):
    template, spent = _synthesized(answer)
    assert spent == 0
    body = template.candidate.tiling_text.split(START)[1].split(END)[0]
    assert body.strip() == "return TILE;"


def test_without_a_tiling_function_the_whole_file_is_marked():
    marked = whole_function_marked(make_candidate("int a;\n"))
    assert marked.tiling_text == f"{START}\nint a;\n{END}\n"
    assert has_blocks(marked)


@pytest.mark.parametrize("name", [spec.name for spec in list_operators()])
def test_the_offline_model_marks_every_built_in_operator(name):
    spec = load_operator(name)
    start = Incumbent(spec.baseline, _result(spec.baseline))
    with pytest.raises(StopIteration) as stopped:
        next(synthesize_template(spec, start, ModelClient(OfflineModel(), seed=0), []))
    template = stopped.value.value[0].candidate
    assert template != whole_function_marked(spec.baseline)
    assert has_blocks(template)
    assert same_code(template, spec.baseline)
    assert unmarked(template) == spec.baseline
    inside = "".join(part.split(END)[0] for part in template.tiling_text.split(START)[1:])
    assert "SetBlockDim" in inside
    assert ("TILE_LENGTH = " in inside) == ("TILE_LENGTH = " in spec.baseline.tiling_text)
    assert "OpDef" not in inside


def test_the_offline_model_marks_functions_without_the_context_where_it_would_change_something():
    tiling = (
        "#include <cmath>\nvoid Tiling::Cores()\n{\n    used_ = platform.GetCoreNumAiv();\n}\n"
        "void Tiling::Other()\n{\n    used_ = 1;\n}\n"
        "ge::graphStatus TilingFunc(gert::TilingContext* context)\n{\n    return tiling.Do();\n}\n"
    )
    spec = make_spec(tiling=tiling, kernel="int k;\n")
    start = Incumbent(spec.baseline, _result(spec.baseline))
    with pytest.raises(StopIteration) as stopped:
        next(synthesize_template(spec, start, ModelClient(OfflineModel(), seed=0), []))
    text = stopped.value.value[0].candidate.tiling_text
    inside = "".join(part.split(END)[0] for part in text.split(START)[1:])
    assert "GetCoreNumAiv" in inside
    assert "tiling.Do()" in inside
    assert "used_ = 1" not in inside


MARKED = make_candidate(f"int a;\n{START}\nint b = 1;\n{END}\nint c;\n", "int k;\n")


@pytest.mark.parametrize(
    ("tiling", "kernel", "allowed"),
    [
        (f"int a;\n{START}\nint b = 2; int d;\n{END}\nint c;\n", None, True),
        (f"int  a; // same\n  {START} here\nint b = 1;\n  {END}\nint c;", None, True),
        (f"int a;\n{START}\n{END}\nint c;\n", None, True),
        (f"int x;\n{START}\nint b = 1;\n{END}\nint c;\n", None, False),
        (f"int a;\nint c;\n{START}\nint b = 1;\n{END}\n", None, False),
        ("int a;\nint b = 2;\nint c;\n", None, False),
        (f"int a;\n{START}\nint b = 1;\nint c;\n", None, False),
        (None, "int j;\n", False),
    ],
)
def test_only_the_inside_of_blocks_may_change(tiling, kernel, allowed):
    assert same_outside_blocks(MARKED, MARKED.rewritten(tiling=tiling, kernel=kernel)) is allowed


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("int a; // x\n", "int  a;/* y\n */", True),
        ("inta;", "int a;", False),
        ("a + +b", "a ++b", False),
        ('"// x"', '"// y"', False),
        ("'/*'; b", "'/*'; c", False),
        ("#define A 1\nint b;", "#define A 1 int b;", False),
        ("#define A 1 \\\n 2\nb", "#define A 1 2\nb", False),
        ("#define A 1 // x\nb", "#define A 1\nb", True),
        ('R"(a // b)"', 'R"(a // c)"', False),
        ("a=/* x */b", "a = b", True),
        ("a // b \\\n c\nd", "a\nd", True),
        ("a // b \\\\\n/* c\nd", "a\nd", True),
        ("u8'\"' + a // b", "u8'\"' + a // c", True),
    ],
)
def test_code_is_compared_without_comments_and_blanks(one, other, same):
    assert (code_tokens(one) == code_tokens(other)) is same


def test_refinement_may_change_numbers_of_both_sides_whose_product_stays():
    host, kernel = "constexpr int BLOCK_DIM = {};\nint t = 4;\n", "constexpr int singleCoreM = {};\n"
    before = make_candidate(host.format(2), kernel.format(512))
    for value, allowed in (("8", True), ("4", False), ("2 * 4", False), ("0", False)):
        texts = {"op_host/toy.cpp": host.format(value), "op_kernel/toy.cpp": kernel.format(128)}
        assert only_shared_constants_differ(before, with_texts(before, texts)) is allowed


def test_a_number_of_the_kernel_accounts_for_one_number_of_the_host():
    host, kernel = "constexpr int BLOCK_DIM = {};\nint t = {};\n", "constexpr int singleCoreM = {};\n"
    before = make_candidate(host.format(2, 4), kernel.format(512))
    for unrelated, allowed in ((4, True), (16, False)):
        texts = {"op_host/toy.cpp": host.format(8, unrelated), "op_kernel/toy.cpp": kernel.format(128)}
        assert only_shared_constants_differ(before, with_texts(before, texts)) is allowed


def test_numbers_that_the_kernel_keeps_account_for_none_of_the_host():
    host, kernel = "int t = {};\n", "void f() { mask = 64; mask = 128; }\n"
    before = make_candidate(host.format(4), kernel)
    assert not only_shared_constants_differ(before, with_texts(before, {"op_host/toy.cpp": host.format(8)}))


SHARED = make_candidate("constexpr int BUFFER_NUM = 1;\nint t = 4;\n", "#define bufferNum 1\nint k = 3;\n")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("constexpr int BUFFER_NUM = 2;\nint t = 4;\n", True),
        ("constexpr int BUFFER_NUM = 2u;\nint t = 4;\n", True),
        ("constexpr int BUFFER_NUM = 3;\nint t = 4;\n", False),
        ("constexpr int BUFFER_NUM = 1;\nint t = 5;\n", False),
        ("constexpr int BUFFER_NUM = x;\nint t = 4;\n", False),
        ("constexpr int BUFFER_NUM = 2 + 1;\nint t = 4;\n", False),
    ],
)
def test_refinement_may_change_a_constant_that_both_sides_share(host, allowed):
    after = with_texts(SHARED, {"op_host/toy.cpp": host, "op_kernel/toy.cpp": "#define bufferNum 2\n"})
    assert only_shared_constants_differ(SHARED, after) is allowed
