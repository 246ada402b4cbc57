"""Parsing Ascend C and editing the original text."""

import pytest

from ascend_gym.rewrites.syntax import Edit, parse, splice, statements_of

KERNEL = """\
// 计算
extern "C" __global__ __aicore__ void toy(GM_ADDR x, GM_ADDR tiling)
{
    AscendC::PipeBarrier<PIPE_ALL>(); // wait
    pipe.InitBuffer(queue, 1, 32);
    __gm__ float* p = (__gm__ float*)x;
    if ASCEND_IS_AIV {
        Muls<float, false>(a[0], b, 2.0f, n);
    }
    int y = Add(a, b);
}
void launch() { toy<<<8, nullptr, stream>>>(x, t); }
"""


def test_ascend_c_qualifiers_do_not_disturb_the_parser():
    assert not parse(KERNEL).root.has_error


def test_the_tree_is_of_the_original_text():
    source = parse(KERNEL)
    function = source.nodes("function_definition")[0]
    assert source.text_of(function).startswith("__global__") or source.text_of(function).startswith("void")
    assert source.text_of(function).endswith("Add(a, b);\n}")
    assert "__gm__ float* p" in source.text_of(source.nodes("compound_statement")[0])


def test_equal_texts_are_parsed_once():
    assert parse(KERNEL) is parse(KERNEL)


def test_calls_are_read_with_scope_template_and_arguments():
    calls = {call.name: call for call in parse(KERNEL).calls}
    barrier, init, muls, add = (calls[name] for name in ("PipeBarrier", "InitBuffer", "Muls", "Add"))
    assert (barrier.callee, barrier.template, barrier.values) == ("AscendC::PipeBarrier", "<PIPE_ALL>", ())
    assert barrier.named("DataCopy") == "AscendC::DataCopy"
    assert (init.callee, init.is_method, init.values) == ("pipe.InitBuffer", True, ("queue", "1", "32"))
    assert (muls.template, muls.is_method, muls.values) == (
        "<float, false>",
        False,
        ("a[0]", "b", "2.0f", "n"),
    )
    assert muls.named("Axpy") == "Axpy"
    assert muls.statement is not None
    assert add.statement is None


def test_lines_count_from_one():
    source = parse(KERNEL)
    call = source.calls[0]
    assert source.line_of(call.node.start_byte) == 4
    assert source.line_of(0) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("void f()\n{\n    A();\n    B();\n}\n", "void f()\n{\n    B();\n}\n"),
        ("void f()\n{\n    A(); // why\n    B();\n}\n", "void f()\n{\n    B();\n}\n"),
        ("void f() { A(); B(); }\n", "void f() {  B(); }\n"),
        ("void f()\n{\n    if (x) A();\n}\n", "void f()\n{\n    if (x) ;\n}\n"),
    ],
)
def test_removal_takes_the_line_only_when_nothing_else_is_on_it(before, after):
    source = parse(before)
    statement = next(call.statement for call in source.calls if call.name == "A")
    assert splice(before, [source.removal(statement)]) == after


def test_bare_ignores_white_space_and_comments():
    source = parse("void f() { A( x ,/* n */ y + 1 ); }")
    assert source.bare(source.calls[0].node) == "A(x,y+1)"


def test_statements_leave_comments_out():
    source = parse("void f() { A(); /* c */ B(); // d\n}")
    block = source.nodes("compound_statement")[0]
    assert [source.text_of(statement) for statement in statements_of(block)] == ["A();", "B();"]


def test_splice_counts_bytes_not_characters():
    assert splice("// 块\nx", [Edit(len("// 块\n".encode()), len("// 块\nx".encode()), "y")]) == "// 块\ny"


@pytest.mark.parametrize("edits", [[Edit(0, 3, "a"), Edit(2, 4, "b")], [Edit(3, 9, "")], [Edit(3, 2, "")]])
def test_splice_refuses_edits_that_overlap_or_leave_the_text(edits):
    with pytest.raises(ValueError, match="overlaps"):
        splice("abcde", edits)
