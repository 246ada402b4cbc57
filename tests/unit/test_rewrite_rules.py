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


def _tiling_after(name, tiling):
    candidate = make_candidate(tiling, "")
    rule = rule_named(name)
    (site,) = rule.sites(candidate)
    return rule.apply(candidate, site, site.choices[0]).tiling_text


LOCAL_T = "LocalTensor<float> t = q.AllocTensor<float>();\n"
COPY_PARAMETERS = "DataCopyExtParams p{1, bytes, 0, 0, 0};\nDataCopyPadExtParams<T> z{false, 0, 0, 0};\n"

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
    (
        "aligned_copy",
        "DataCopyPad(yGm[i], y, {1, (uint32_t)(n * 4), 0, 0, 0});",
        "if (((uint32_t)(n * 4)) % 32 == 0) {\n"
        "    DataCopy(yGm[i], y, DataCopyParams(1, static_cast<uint16_t>(((uint32_t)(n * 4)) / 32), 0, 0));\n"
        "} else {\n    DataCopyPad(yGm[i], y, {1, (uint32_t)(n * 4), 0, 0, 0});\n}",
    ),
    (
        "aligned_copy",
        COPY_PARAMETERS + "A::DataCopyPad(x, xGm, p, z);",
        COPY_PARAMETERS + "if (p.blockLen % 32 == 0) {\n"
        "    A::DataCopy(x, xGm, A::DataCopyParams(1, static_cast<uint16_t>(p.blockLen / 32), 0, 0));\n"
        "} else {\n    A::DataCopyPad(x, xGm, p, z);\n}",
    ),
    (  # the declaration that holds is the one of the block
        "aligned_copy",
        "{\n    DataCopyExtParams p{1, 64, 0, 0, 0};\n    DataCopyPad(yGm, y, p);\n}\n"
        "{\n    DataCopyExtParams p{1, 96, 0, 0, 0};\n}",
        "{\n    DataCopyExtParams p{1, 64, 0, 0, 0};\n"
        "    if (64 % 32 == 0) {\n"
        "        DataCopy(yGm, y, DataCopyParams(1, static_cast<uint16_t>(64 / 32), 0, 0));\n"
        "    } else {\n        DataCopyPad(yGm, y, p);\n    }\n}\n"
        "{\n    DataCopyExtParams p{1, 96, 0, 0, 0};\n}",
    ),
    (  # and the initial value that of its own variable
        "aligned_copy",
        "DataCopyExtParams a{1, 96, 0, 0, 0}, p{1, 64, 0, 0, 0};\nDataCopyPad(yGm, y, p);",
        "DataCopyExtParams a{1, 96, 0, 0, 0}, p{1, 64, 0, 0, 0};\n"
        "if (64 % 32 == 0) {\n"
        "    DataCopy(yGm, y, DataCopyParams(1, static_cast<uint16_t>(64 / 32), 0, 0));\n"
        "} else {\n    DataCopyPad(yGm, y, p);\n}",
    ),
    *(
        (  # what may have changed is read when the copy runs
            "aligned_copy",
            f"DataCopyExtParams p{{1, 64, 0, 0, 0}};\n{change}\nDataCopyPad(yGm, y, p);",
            f"DataCopyExtParams p{{1, 64, 0, 0, 0}};\n{change}\n"
            "if (p.blockLen % 32 == 0 && p.dstStride % 32 == 0 && p.dstStride / 32 <= 65535) {\n"
            "    DataCopy(yGm, y, DataCopyParams(static_cast<uint16_t>(p.blockCount), "
            "static_cast<uint16_t>(p.blockLen / 32), static_cast<uint16_t>(p.srcStride), "
            "static_cast<uint16_t>(p.dstStride / 32)));\n} else {\n    DataCopyPad(yGm, y, p);\n}",
        )
        for change in (
            "p = DataCopyExtParams{1, 96, 0, 0, 0};",
            "Adapt(p);",
            "Adapt(p.blockLen);",
            "auto& q = p;",
            "p.blockLen = 96;",
            "p.blockLen++;",
            "auto* q = &p;",
        )
    ),
    (
        "aligned_copy",
        "p.srcStride = rest;\nDataCopyPad(x, xGm, p, z);",
        "p.srcStride = rest;\n"
        "if (p.blockLen % 32 == 0 && p.srcStride % 32 == 0 && p.srcStride / 32 <= 65535 && "
        "z.leftPadding == 0 && z.rightPadding == 0) {\n"
        "    DataCopy(x, xGm, DataCopyParams(static_cast<uint16_t>(p.blockCount), "
        "static_cast<uint16_t>(p.blockLen / 32), static_cast<uint16_t>(p.srcStride / 32), "
        "static_cast<uint16_t>(p.dstStride)));\n} else {\n    DataCopyPad(x, xGm, p, z);\n}",
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
    ("aligned_copy", "if (n % 16 == 0) {\n    DataCopy(y, x, n);\n} else {\n    DataCopyPad(y, x, p, z);\n}"),
    ("aligned_copy", "DataCopyPad(x, xGm, p, {true, 0, pad, 0});"),
    ("aligned_copy", "DataCopy(x, xGm, n);"),
    ("in_place_compute", LOCAL_T + "Muls(t, a, s, n);"),
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


IN_PLACE = """\
class K {
    void Init()
    {
        pipe.InitBuffer(queue, 1, 64);
        pipe.InitBuffer(tmpBuf, 64);
    }
    void Compute()
    {
        LocalTensor<T> x = queue.DeQue<T>();
        LocalTensor<T> y = out.AllocTensor<T>();
        LocalTensor<T> scaled = tmpBuf.Get<T>();
        Muls(scaled, x, alpha, n);
        Add(y, z, scaled, n);
        queue.FreeTensor(x);
    }
    TBuf<TPosition::VECCALC> tmpBuf;
};
"""


def test_in_place_compute_drops_the_buffer():
    removed = ("        pipe.InitBuffer(tmpBuf, 64);\n", "        LocalTensor<T> scaled = tmpBuf.Get<T>();\n")
    expected = IN_PLACE.replace("    TBuf<TPosition::VECCALC> tmpBuf;\n", "")
    for line in removed:
        expected = expected.replace(line, "")
    expected = expected.replace("Muls(scaled, x", "Muls(x, x").replace("z, scaled", "z, x")
    assert _kernel_after("in_place_compute", IN_PLACE) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("queue.FreeTensor(x);", "Add(y, y, x, n);\n        queue.FreeTensor(x);"),
        (
            "Add(y, z, scaled, n);\n        queue.FreeTensor(x);",
            "queue.FreeTensor(x);\n        Add(y, z, scaled, n);",
        ),
        ("LocalTensor<T> scaled", "LocalTensor<float> scaled"),
        ("void Compute()", "void More() { Exp(y, tmpBuf.Get<T>(), n); }\n    void Compute()"),
    ],
)
def test_in_place_compute_needs_a_source_that_is_done_with_and_a_private_buffer(old, new):
    assert rule_named("in_place_compute").sites(make_candidate("", IN_PLACE.replace(old, new))) == []


TILINGS = [
    ("tile_size", "constexpr uint32_t TILE_LENGTH = 2048;\n", "constexpr uint32_t TILE_LENGTH = 4096;\n"),
    ("tile_size", "#define UB_PART_SIZE 1024U // bytes\n", "#define UB_PART_SIZE 2048U // bytes\n"),
    ("tile_size", "const int MAX_TILE = 8 * 1024;\n", "const int MAX_TILE = (8 * 1024) * 2;\n"),
    (
        "tile_size",
        "void f() { uint32_t tileLength = ubSize / 3; }\n",
        "void f() { uint32_t tileLength = (ubSize / 3) / 2; }\n",
    ),
    ("tile_size", "void f() { tiling.set_tileNum(8); }\n", "void f() { tiling.set_tileNum(4); }\n"),
    (
        "tile_size",
        "void f() { uint64_t tileBlockNum = (ubSize / 32) / ubDataNumber; }\n",
        "void f() { uint64_t tileBlockNum = ((ubSize / 32) / ubDataNumber) / 2; }\n",
    ),
    (
        "tile_size",
        "void f() { uint64_t ubPartNum = wide ? 8 : 4; }\n",
        "void f() { uint64_t ubPartNum = (wide ? 8 : 4) * 2; }\n",
    ),
    ("block_dim", "constexpr uint32_t BLOCK_DIM = 20;\n", "constexpr uint32_t BLOCK_DIM = 48;\n"),
    ("block_dim", "void f() { context->SetBlockDim(8); }\n", "void f() { context->SetBlockDim(48); }\n"),
]


@pytest.mark.parametrize(("name", "before", "after"), TILINGS)
def test_tiling_rule_makes_exactly_this_change(name, before, after):
    assert _tiling_after(name, before) == after


@pytest.mark.parametrize(
    ("name", "tiling"),
    [
        ("tile_size", "constexpr uint32_t TILING_KEY = 2;\nconstexpr uint32_t BLOCK_SIZE = 32;\n"),
        ("tile_size", "constexpr uint64_t TILE_KEY = 10;\nconstexpr float TILE_FACTOR = 2.0f;\n"),
        ("tile_size", "void f() { uint64_t tileNum = total / length; }\n"),
        ("tile_size", "void f() { uint64_t tileDataNum = tileBlockNum * 32 / inputBytes; }\n"),
        ("block_dim", "constexpr uint32_t BLOCK_SIZE = 32;\nuint32_t usedCoreNum = 1;\n"),
        ("block_dim", "void f() { context->SetBlockDim(coreNum); }\n"),
        ("block_dim", "constexpr uint32_t bigCoreDataNum = 64;\n"),
        ("buffer_count", "constexpr uint32_t BUFFER_NUM = 1;\n"),  # of the host alone
    ],
)
def test_tiling_rule_leaves_other_names_alone(name, tiling):
    assert rule_named(name).sites(make_candidate(tiling, "")) == []


def test_tile_size_offers_larger_tiles_first_and_smaller_ones_as_the_way_back():
    (site,) = rule_named("tile_size").sites(make_candidate("constexpr int TILE = 16;\n", ""))
    assert site.label == f"{HOST}:1 TILE = 16"
    assert [(choice.label, choice.forward) for choice in site.choices] == [
        ("TILE: 16 -> 32", True),
        ("TILE: 16 -> 64", True),
        ("TILE: 16 -> 128", True),
        ("TILE: 16 -> 8", False),
        ("TILE: 16 -> 4", False),
        ("TILE: 16 -> 2", False),
    ]


def test_a_tile_that_fills_ub_is_offered_smaller_first():
    (site,) = rule_named("tile_size").sites(make_candidate("void f() { uint64_t ubDataNumber = 6; }\n", ""))
    assert [(choice.label, choice.forward) for choice in site.choices] == [
        ("ubDataNumber: 6 -> 12", True),
        ("ubDataNumber: 6 -> 24", True),
        ("ubDataNumber: 6 -> 48", True),
        ("ubDataNumber: 6 -> 3", False),
    ]
    (site,) = rule_named("tile_size").sites(make_candidate("void f() { int tileLength = room / 3; }\n", ""))
    assert all(choice.forward and "/" in choice.label for choice in site.choices)


def test_block_dim_offers_more_cores_first():
    (site,) = rule_named("block_dim").sites(make_candidate("constexpr int BLOCK_DIM = 24;\n", ""))
    assert [choice.label.split()[-1] for choice in site.choices if choice.forward] == ["48", "40"]
    assert [choice.label.split()[-1] for choice in site.choices if not choice.forward] == ["20", "12"]


def test_a_tile_length_of_both_sides_changes_on_both():
    tiling, kernel = "constexpr uint32_t TILE_LENGTH = 64;\n", "constexpr int32_t TILE_LENGTH = 64;\n"
    candidate = make_candidate(tiling, kernel)
    assert rule_named("tile_size").sites(candidate) == []
    assert rule_named("kernel_tile_size").sites(candidate) == []
    _, _, after = _rewrites(rule_named("shared_tile_size"), tiling, kernel)[0]
    assert after == {HOST: tiling.replace("64", "128"), KERNEL: kernel.replace("64", "128")}


def test_a_tile_length_of_the_kernel_alone_changes_there():
    kernel = "class K {\n    constexpr static int64_t bufferSize = 6144;\n};\n"
    _, _, after = _rewrites(rule_named("kernel_tile_size"), "constexpr int bufferSize = 4096;\n", kernel)[0]
    assert after[KERNEL] == kernel.replace("6144", "12288")


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


FIXED_CORES = """\
constexpr uint32_t BLOCK_DIM = 8;
static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    context->SetBlockDim(BLOCK_DIM);
    return ge::GRAPH_SUCCESS;
}
"""


def test_block_dim_from_platform_shadows_the_constant_and_includes_the_header():
    line = (
        "    const uint32_t BLOCK_DIM = "
        "platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();\n"
    )
    expected = '#include "tiling/platform/platform_ascendc.h"\n' + FIXED_CORES.replace("{\n", "{\n" + line)
    assert _tiling_after("block_dim_from_platform", FIXED_CORES) == expected
    included = '#include "tiling/platform/platform_ascendc.h"\n' + FIXED_CORES
    assert _tiling_after("block_dim_from_platform", included) == expected


@pytest.mark.parametrize(
    "tiling",
    [
        FIXED_CORES.replace("gert::TilingContext* context", "Params& p"),
        FIXED_CORES + "int more() { return BLOCK_DIM; }\n",
        FIXED_CORES.replace("constexpr uint32_t BLOCK_DIM = 8;", "#define BLOCK_DIM 8"),
    ],
)
def test_block_dim_from_platform_needs_one_user_with_the_context(tiling):
    assert rule_named("block_dim_from_platform").sites(make_candidate(tiling, "")) == []


def test_rules_have_names_preconditions_and_inverses_that_exist():
    assert len({rule.name for rule in RULES}) == len(RULES) >= 10
    for rule in RULES:
        assert len(rule.precondition) > 40
        assert rule.effect.pipes
        if rule.inverse is not None:
            assert rule_named(rule.inverse).family is rule.family


def test_rules_edit_the_side_they_name():
    tiling = "constexpr int TILE = 16;\nconstexpr int BUFFER_NUM = 1;\n" + FIXED_CORES
    functions = "".join(_in_function(before) for _, before, _ in KERNEL_BODIES)
    kernel = "constexpr int TILE = 16;\nconstexpr int BUFFER_NUM = 1;\nconstexpr int CHUNK = 8;\n"
    candidate = make_candidate(tiling, kernel + functions + IN_PLACE)
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
