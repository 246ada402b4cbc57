"""Each rule on a snippet where it applies, with the exact change, and on snippets where it must not."""

import pytest
from conftest import make_candidate

from ascend_gym.core.errors import MisuseError
from ascend_gym.rewrites.library import RULES, rule_named
from ascend_gym.rewrites.rule import Side

HOST = "op_host/toy.cpp"
KERNEL = "op_kernel/toy.cpp"


def _in_function(body):
    lines = "".join(f"        {line}\n" if line else "\n" for line in body.split("\n"))
    return f"class K {{\n    void Compute(uint32_t n)\n    {{\n{lines}    }}\n}};\n"


def _rewrites(rule, tiling="", kernel=""):
    """Return, for every site and choice, the texts after the rule, with the site's and choice's labels."""
    candidate = make_candidate(tiling, kernel)
    return [
        (site.label, choice.label, rule.apply(candidate, site, choice).texts)
        for site in rule.sites(candidate)
        for choice in site.choices
    ]


def _kernel_after(name, kernel):
    """Return the kernel after the only site's first choice."""
    candidate = make_candidate("", kernel)
    rule = rule_named(name)
    (site,) = rule.sites(candidate)
    return rule.apply(candidate, site, site.choices[0]).kernel_text


COPY = "DataCopyPad(yGm[i], y, {1, (uint32_t)(n * 4), 0, 0, 0});"
LOCAL_T = "LocalTensor<float> t = q.AllocTensor<float>();\n"

# rule, body of a kernel function before, the same after the only site's first choice
KERNEL_BODIES = [
    (
        "queue_buffers",
        "pipe.InitBuffer(inQueue, 1, n * sizeof(T));",
        "pipe.InitBuffer(inQueue, 2, n * sizeof(T));",
    ),
    ("full_barrier_removal", "A();\nAscendC::PipeBarrier<PIPE_ALL>();\nB();", "A();\nB();"),
    ("full_barrier_removal", "A();\npipe_barrier(PIPE_ALL);\nB();", "A();\nB();"),
    ("full_barrier_narrowing", "PipeBarrier<PIPE_ALL>();", "PipeBarrier<PIPE_V>();"),
    ("vector_barrier_removal", "A();\nPipeBarrier<PIPE_V>(); // for a\nB();", "A();\nB();"),
    (
        "loop_tail_folding",
        "for (int32_t i = 0; i < loops-1; i++)\n{\n    CopyIn(i);\n    Compute(i, (i) * 2);\n}\n"
        "this->count = this->tail;\nCopyIn(loops - 1);\nCompute(loops - 1, (loops - 1) * 2);\nDone();",
        "for (int32_t i = 0; i < loops; i++)\n{\n    if (i == loops-1) {\n        this->count = this->tail;\n"
        "    }\n    CopyIn(i);\n    Compute(i, (i) * 2);\n}\nDone();",
    ),
    (
        "loop_tail_folding",
        "for (int i = 0; i < this->loopNum - 1; i++) {\n    Step(i);\n}\nStep(this->loopNum - 1);",
        "for (int i = 0; i < this->loopNum; i++) {\n    Step(i);\n}",
    ),
    (
        "axpy",
        LOCAL_T + "Muls(t, a, s, n);\nPipeBarrier<PIPE_V>();\nAdd(d, d, t, n);\nq.FreeTensor(t);",
        LOCAL_T + "Axpy(d, a, s, n);\nq.FreeTensor(t);",
    ),
    (
        "axpy",
        LOCAL_T + "AscendC::Muls(t, a[8], s, n);\nAscendC::Add(d, t, d, n);\nAscendC::Exp(t, d, n);",
        LOCAL_T + "AscendC::Axpy(d, a[8], s, n);\nAscendC::Exp(t, d, n);",
    ),
    (
        "mul_add_dst",
        LOCAL_T + "Mul(t, a, b, n);\nAdd(d, d, t, n);",
        LOCAL_T + "MulAddDst(d, a, b, n);",
    ),
    ("fused_mul_add", "Mul(d, d, a, n);\nAdd(d, d, b, n);", "FusedMulAdd(d, a, b, n);"),
    ("fused_mul_add", "Mul(d, a, d, n);\nAdd(d, b, d, n);", "FusedMulAdd(d, a, b, n);"),
    ("relu_fusion", "Add(d, a, b, n);\nRelu(d, d, n);", "AddRelu(d, a, b, n);"),
    ("relu_fusion", LOCAL_T + "Sub(t, a, b, n);\nRelu(y, t, n);", LOCAL_T + "SubRelu(y, a, b, n);"),
    ("scalar_chain", "Muls(t, x, alpha, n);\nMuls(t, t, -1.0f, n);", "Muls(t, x, (alpha) * (-1.0f), n);"),
    ("scalar_chain", "Adds(t, x, 2, n);\nAdds(t, t, b, n);", "Adds(t, x, (2) + (b), n);"),
    ("identity_removal", "Adds(x, x, 0.0f, n);\nB();", "B();"),
    ("identity_removal", "Muls(x, x, static_cast<T>(1.0), n);\nB();", "B();"),
    (
        "scalar_operand",
        LOCAL_T + "Duplicate(t, T(3), n);\nPipeBarrier<PIPE_V>();\nMax(y, x, t, n);",
        LOCAL_T + "Maxs(y, x, T(3), n);",
    ),
    (
        "scalar_operand",
        LOCAL_T + "Duplicate(t, c, n);\nDiv(y, x, t, n);",
        LOCAL_T + "Muls(y, x, static_cast<decltype(c)>(1.0f / static_cast<float>(c)), n);",
    ),
    (
        "scalar_operand",
        LOCAL_T + "Duplicate<float>(t, 2, n);\nDiv(y, x, t, n);",
        LOCAL_T + "Muls<float>(y, x, static_cast<float>(1.0f / 2), n);",
    ),
    (
        "scalar_operand",
        LOCAL_T + "Duplicate<half>(t, half(2), n);\nDiv<half>(y, x, t, n);",
        LOCAL_T + "Muls<half>(y, x, static_cast<half>(1.0f / static_cast<float>(half(2))), n);",
    ),
    (
        "scalar_operand",
        LOCAL_T + "Duplicate(t, 0.5f, n);\nDiv(y, x, t, n);",
        LOCAL_T + "Muls(y, x, static_cast<decltype(0.5f)>(1.0f / 0.5f), n);",
    ),
    (
        "scalar_operand",
        LOCAL_T + "Duplicate<float>(t, 2, n);\nMax(y, x, t, n);",
        LOCAL_T + "Maxs<float>(y, x, 2, n);",
    ),
    (
        "axpy",
        LOCAL_T + "Muls<float>(t, a, 2, n);\nAdd(d, d, t, n);",
        LOCAL_T + "Axpy<float, float>(d, a, 2, n);",
    ),
    ("reciprocal", "Duplicate<float>(y, (float)1.0, n);\nDiv(y, y, x, n);", "Reciprocal<float>(y, x, n);"),
    (
        "hoisted_duplicate",
        "for (int i = 0; i < m; i++) {\n    Duplicate(zero, 0.0f, n);\n    Max(y[i], x[i], zero, n);\n}",
        "Duplicate(zero, 0.0f, n);\nfor (int i = 0; i < m; i++) {\n    Max(y[i], x[i], zero, n);\n}",
    ),
]


@pytest.mark.parametrize(("name", "before", "after"), KERNEL_BODIES)
def test_kernel_rule_makes_exactly_this_change(name, before, after):
    assert _kernel_after(name, _in_function(before)) == _in_function(after)


NOT_HERE = [
    ("queue_buffers", "pipe.InitBuffer(inQueue, BUFFER_NUM, n);\npipe.InitBuffer(buf, n);"),
    ("full_barrier_removal", "PipeBarrier<PIPE_V>();\n// PipeBarrier<PIPE_ALL>();"),
    ("full_barrier_narrowing", "PipeBarrier<PIPE_MTE3>();"),
    ("vector_barrier_removal", "PipeBarrier<PIPE_ALL>();"),
    ("loop_tail_folding", "for (int i = 0; i < m; i++) {\n    Step(i);\n}\nStep(m - 1);"),
    ("loop_tail_folding", "for (int i = 0; i < m - 1; i++) {\n    Step(i);\n}\nOther(m - 1);"),
    ("loop_tail_folding", "for (int i = 0; i < m - 2; i++) {\n    Step(i);\n}\nStep(m - 2);"),
    ("axpy", "Muls(t, a, s, n);\nAdd(d, d, t, n);"),  # t could be read by others
    ("axpy", LOCAL_T + "Muls(t, a, s, n);\nAdd(d, d, t, n);\nExp(y, t, n);"),
    ("axpy", LOCAL_T + "Muls(t, a, s, n);\nAdd(d, d, t, m);"),
    ("axpy", LOCAL_T + "Muls(t, a, s, n);\nAdd(y, d, t, n);"),
    ("axpy", LOCAL_T + "Muls(t, a, s, n);\nStep();\nAdd(d, d, t, n);"),
    ("mul_add_dst", LOCAL_T + "Mul(t, a, b, n);\nAdd(d, d, t, n);\nq.EnQue(t);"),
    ("mul_add_dst", LOCAL_T + "Mul(t, d, b, n);\nAdd(d, d, t, n);"),
    ("fused_mul_add", "Mul(d, d, d, n);\nAdd(d, d, b, n);"),
    ("fused_mul_add", "Mul(d, d, a, n);\nAdd(y, d, b, n);"),
    ("fused_mul_add", "Mul(d, d, a, n);\nAdd(d, d, d, n);"),
    ("relu_fusion", LOCAL_T + "Add(t, a, b, n);\nRelu(y, t, n);\nExp(z, t, n);"),
    ("relu_fusion", "Add(d, a, b, n);\nRelu(y, x, n);"),
    ("scalar_chain", "Muls(t, x, 2, n);\nAdds(t, t, 1, n);"),
    ("scalar_chain", "Muls(t, x, 2, n);\nMuls(y, t, 3, n);"),
    ("identity_removal", "Adds(y, x, 0.0f, n);\nMuls(x, x, 10, n);\nAdds(x, x, 0.5f, n);"),
    ("scalar_operand", LOCAL_T + "Duplicate(t, c, n);\nSub(y, x, t, n);"),
    ("scalar_operand", LOCAL_T + "Duplicate(t, c, n);\nDiv(y, t, x, n);"),
    ("reciprocal", "Duplicate(y, 2.0f, n);\nDiv(y, y, x, n);"),
    ("reciprocal", "Duplicate(y, 1.0f, n);\nDiv(y, x, y, n);"),
    ("hoisted_duplicate", "for (int i = 0; i < m; i++) {\n    Duplicate(t, a[i], n);\n}"),
    ("hoisted_duplicate", "for (int i = 0; i < m; i++) {\n    Duplicate(t, c, n);\n    Add(t, t, x, n);\n}"),
    ("hoisted_duplicate", "for (int i = 0; i < m; i++) {\n    auto t = q.Get();\n    Duplicate(t, c, n);\n}"),
    ("hoisted_duplicate", "Duplicate(t, c, n);"),
    *(
        ("hoisted_duplicate", f"{before}for (int i = 0; i < m; i++) {{\n{body}\n}}{after}")
        for before, body, after in (
            ("if (x)\n", "Duplicate(c, 0, n);", "\nelse\n    Step();"),
            ("", "Duplicate(c, 0, n);\nAdd(c[64], a, b, n);", ""),
            ("", "Duplicate(c, 0, n);\nFill(a, c);", ""),
            ("", "Duplicate(c, 0, n);\nCompute(i);", ""),
            ("", "Add(y, x, c, n);\nDuplicate(c, 0, n);", ""),
            ("", "Duplicate(c, 0, n);\nauto v = c[8];\nAdd(v, a, b, n);", ""),
            ("", "Duplicate(c, 0, n);\nc.SetValue(0, 1);", ""),
            ("", "Duplicate(c, v, n);\nqueue.Take(v);", ""),
            ("", "Duplicate(c, 0, n);\nReduceSum(y, x, c, n);", ""),
            ("", "LocalTensor<float> c;\nDuplicate(c, 0, n);", ""),
            ("switch (x) {\ncase 1:\n    Step();\n", "Duplicate(c, 0, n);", "\n}"),
        )
    ),
    ("scalar_operand", LOCAL_T + "Duplicate(t, 2, n);\nDiv(y, x, t, n);"),  # of which type is 2?
    ("axpy", LOCAL_T + "Muls<float, false>(t, a, s, n);\nAdd(d, d, t, n);"),
    ("mul_add_dst", LOCAL_T + "Mul<float>(t, a, b, n);\nAdd<half>(d, d, t, n);"),
    *(
        ("axpy", f"{before}Muls(t, a, s, n);\nAdd(d, d, t, n);{after}")
        for before, after in (
            (LOCAL_T + "for (int i = 0; i < m; i++) {\nExp(y, t, n);\n", "\n}"),
            (LOCAL_T + "while (more) {\n", "\nExp(t, d, n);\n}"),
            (LOCAL_T, "\nif (x) {\n    Exp(t, y, n);\n}\nAdd(y, y, t, n);"),
            (LOCAL_T, "\nExp(t, y, n / 2);\nAdd(y, y, t, n);"),
            (LOCAL_T, "\nExp(t[64], y, n);\nAdd(y, y, t, n);"),
            (LOCAL_T, "\nAxpy(t, y, s, n);"),  # reads what it writes
            (LOCAL_T, "\nStep(t, n);"),
            (LOCAL_T, "\nExp(t, t[8], n);"),
            (LOCAL_T + "auto view = t;\n", "\nExp(y, view, n);"),
            (LOCAL_T + "auto view = t[64];\n", "\nExp(y, view, n);"),
            (LOCAL_T + "auto view = t.ReinterpretCast<int>();\n", "\nExp(y, view, n);"),
            ("LocalTensor<float> t = other;\n", "\nExp(y, other, n);"),
            ("LocalTensor<float> t = other[64];\n", "\nExp(y, other, n);"),
            ("LocalTensor<float>& t = held.Get<float>();\n", ""),
            (
                "LocalTensor<float> t = b.Get<float>();\nLocalTensor<float> u = this->b.Get<float>();\n",
                "\nExp(y, u, n);",
            ),
            ("{\n    " + LOCAL_T + "}\n", ""),  # t is another one here
        )
    ),
]


@pytest.mark.parametrize(("name", "body"), NOT_HERE)
def test_kernel_rule_leaves_other_code_alone(name, body):
    assert rule_named(name).sites(make_candidate("", _in_function(body))) == []


def test_a_buffer_that_another_function_looks_at_is_not_dead():
    compute = _in_function("LocalTensor<float> t = tmp.Get<float>();\nMuls(t, a, s, n);\nAdd(d, d, t, n);")
    assert len(rule_named("axpy").sites(make_candidate("", compute))) == 1
    both = compute + "void Other() { Exp(y, tmp.Get<float>(), n); }\n"
    assert rule_named("axpy").sites(make_candidate("", both)) == []


QUEUES = """\
class K {
    void Init()
    {
        pipe.InitBuffer(in, 1, 64);
        pipe.InitBuffer(out, 1, 64);
        pipe.InitBuffer(ready, 2, 64);
    }
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> in;
    TQue<QuePosition::VECOUT, DEPTH> out;
    TQue<QuePosition::VECOUT, 2> ready;
};
"""


def test_queue_buffers_changes_depth_with_count_and_all_queues_at_once():
    rewrites = _rewrites(rule_named("queue_buffers"), kernel=QUEUES)
    labels = [(site, choice) for site, choice, _ in rewrites]
    assert labels == [
        (f"{KERNEL}:4 in has 1", "1 -> 2 buffers"),
        (f"{KERNEL}:5 out has 1", "1 -> 2 buffers"),
        (f"all 2 queues with 1 of {KERNEL}", "1 -> 2 buffers"),
        (f"{KERNEL}:6 ready has 2", "2 -> 1 buffers"),
    ]
    after = rewrites[2][2][KERNEL]
    assert "InitBuffer(in, 2, 64)" in after
    assert "VECIN, 2> in" in after
    assert "InitBuffer(out, 2, 64)" in after
    assert "VECOUT, DEPTH> out" in after
    assert rewrites[3][2][KERNEL] == QUEUES.replace("(ready, 2", "(ready, 1").replace("2> ready", "1> ready")


def test_all_barriers_at_once_come_last():
    body = "A();\nPipeBarrier<PIPE_ALL>();\nB();\nPipeBarrier<PIPE_ALL>();"
    rewrites = _rewrites(rule_named("full_barrier_removal"), kernel=_in_function(body))
    assert [site for site, _, _ in rewrites][-1] == f"all 2 PIPE_ALL barriers of {KERNEL}"
    assert rewrites[-1][2][KERNEL] == _in_function("A();\nB();")


def test_buffer_count_of_the_kernel():
    kernel = "constexpr int32_t BUFFER_NUM = 1;\n"
    (site,) = rule_named("buffer_count").sites(make_candidate("", kernel))
    assert [(choice.label, choice.forward) for choice in site.choices] == [
        ("BUFFER_NUM: 1 -> 2", True),
        ("BUFFER_NUM: 1 -> 3", False),
        ("BUFFER_NUM: 1 -> 4", False),
    ]
    assert _kernel_after("buffer_count", kernel) == "constexpr int32_t BUFFER_NUM = 2;\n"
    assert rule_named("buffer_count").sites(make_candidate("", "constexpr int BUFFER_NUM = 9;\n")) == []


def test_shared_buffer_count_keeps_host_and_kernel_alike():
    tiling, kernel = (
        "const uint64_t BUFFER_NUM = 1;\n",
        "class K {\n    constexpr static int32_t bufferNum = 1;\n};\n",
    )
    _, _, after = _rewrites(rule_named("shared_buffer_count"), tiling, kernel)[0]
    assert after == {HOST: tiling.replace("1", "2"), KERNEL: kernel.replace("1", "2")}
    assert rule_named("shared_buffer_count").sites(make_candidate(tiling, kernel.replace("1", "2"))) == []


def test_rules_have_names_preconditions_and_inverses_that_exist():
    assert len({rule.name for rule in RULES}) == len(RULES) >= 10
    for rule in RULES:
        assert len(rule.precondition) > 40
        assert rule.effect.pipes
        if rule.inverse is not None:
            assert rule_named(rule.inverse).family is rule.family


def test_rules_edit_the_side_they_name():
    tiling = "constexpr int TILE = 16;\nconstexpr int BUFFER_NUM = 1;\nconst int BLOCK_DIM = 8;\n"
    functions = "".join(_in_function(before) for _, before, _ in (*KERNEL_BODIES, ("", COPY, "")))
    kernel = "constexpr int TILE = 16;\nconstexpr int BUFFER_NUM = 1;\nconstexpr int CHUNK = 8;\n"
    candidate = make_candidate(tiling, kernel + functions)
    folder = {Side.TILING: {HOST}, Side.KERNEL: {KERNEL}, Side.BOTH: {HOST, KERNEL}}
    found = set()
    for rule in RULES:
        for site in rule.sites(candidate):
            found.add(rule.name)
            for choice in site.choices:
                assert {edit.path for edit in choice.edits} == folder[rule.side]
    assert {"shared_tile_size", "kernel_tile_size", "block_dim", "aligned_copy", "axpy"} <= found


def test_applying_a_choice_of_another_site_or_candidate_is_refused():
    rule = rule_named("tile_size")
    candidate = make_candidate("constexpr int TILE = 16;\n", "")
    (site,) = rule.sites(candidate)
    (other,) = rule.sites(make_candidate("\n\nconstexpr int TILE = 1024;\n", ""))
    with pytest.raises(MisuseError, match="no choice of"):
        rule.apply(candidate, site, other.choices[0])
    with pytest.raises(MisuseError, match="another candidate"):
        rule.apply(candidate, other, other.choices[0])
