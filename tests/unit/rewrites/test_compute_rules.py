"""Rules about vector arithmetic: the exact change, and where they must not apply."""

import pytest
from conftest import make_candidate
from rewritten import in_function, kernel_after, rule_named

LOCAL_T = "LocalTensor<float> t = q.AllocTensor<float>();\n"

TYPED = "LocalTensor<float> x = q.DeQue<float>();\nLocalTensor<float> y = o.AllocTensor<float>();\n"

# rule, body of a kernel function before, the same after the only site's first choice
HALVES = (
    "LocalTensor<half> x = in.DeQue<half>();\nLocalTensor<half> y = out.AllocTensor<half>();\n"
    "LocalTensor<float> f = wide.Get<float>();\n"
)

KERNEL_BODIES = [
    (
        "narrowing",
        HALVES + "Cast(f, x, RoundMode::CAST_NONE, n);\nPipeBarrier<PIPE_V>();\nMuls(f, f, s, n);\n"
        "Cast(y, f, RoundMode::CAST_RINT, n);\nout.EnQue(y);",
        HALVES + "Muls(y, x, static_cast<half>(s), n);\nout.EnQue(y);",
    ),
    (
        "scalar_operand",
        "Duplicate(y, s, n);\nMul(y, y, x, n);",
        "Muls(y, x, s, n);",
    ),
    (  # c is still needed, but a product is cheaper than a quotient
        "scalar_operand",
        "Duplicate<float>(c, s, n);\nDiv<float>(y, x, c, n);",
        "Duplicate<float>(c, s, n);\nMuls<float>(y, x, static_cast<float>(1.0f / static_cast<float>(s)), n);",
    ),
    (
        "reciprocal",
        "constexpr float ONE = 1.0f;\nDuplicate(c, ONE, n);\nDiv(y, c, x, n);",
        "constexpr float ONE = 1.0f;\nDuplicate(c, ONE, n);\nReciprocal(y, x, n);",
    ),
    (
        "hoisted_element",
        TYPED + "for (int i = 0; i < m; i++) {\n    float v = x.GetValue(0);\n    Adds(y[i], y[i], v, n);\n}",
        TYPED + "float v = x.GetValue(0);\nfor (int i = 0; i < m; i++) {\n    Adds(y[i], y[i], v, n);\n}",
    ),
    (
        "vector_fill",
        TYPED + "for (uint32_t i = 0; i < n; ++i) {\n    y.SetValue(i, s);\n}",
        TYPED + "AscendC::Duplicate(y, static_cast<float>(s), n);",
    ),
    (
        "vector_index",
        TYPED + "for (uint32_t i = 0; i < n; i++) {\n    y.SetValue(i, static_cast<float>(i));\n}",
        TYPED + "AscendC::CreateVecIndex(y, static_cast<float>(0), n);",
    ),
    (
        "vector_index",
        TYPED + "for (uint32_t i = 0; i < n; i++) {\n    y.SetValue(i, i * 4);\n}",
        TYPED + "AscendC::ArithProgression(y, static_cast<float>(0), static_cast<float>(4), n);",
    ),
    (
        "vector_arithmetic",
        TYPED + "for (uint32_t i = 0; i < n; i++) {\n    y.SetValue(i, s * (float)x.GetValue(i));\n}",
        TYPED + "AscendC::Muls(y, x, static_cast<float>(s), n);",
    ),
    (
        "vector_arithmetic",
        TYPED + "for (uint32_t i = 0; i < n; i++) {\n    y.SetValue(i, x.GetValue(i) - y.GetValue(i));\n}",
        TYPED + "AscendC::Sub(y, x, y, n);",
    ),
    (
        "whole_call",
        "for (int r = 0; r < rows; r++) {\n    Add(y[b + r * n], x[r * n], z[n * r], n);\n"
        "    PipeBarrier<PIPE_V>();\n}",
        "Add(y[b], x, z, (rows) * (n));",
    ),
    (
        "whole_call",
        "for (uint32_t p = 0; p < n; p += 64) {\n    Exp(y[p], x[p], n - p < 64 ? n - p : 64);\n}",
        "Exp(y, x, n);",
    ),
    (
        "reduction_tree",
        LOCAL_T + "ReduceSum(y, t, work, n);\nq.FreeTensor(t);",
        LOCAL_T + "{\n    uint32_t left = n;\n    for (; left >= 1024 && left % 128 == 0; left /= 2) {\n"
        "        Add(t, t, t[left / 2], left / 2);\n    }\n    ReduceSum(y, t, work, left);\n}\n"
        "q.FreeTensor(t);",
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
    assert kernel_after(name, in_function(before)) == in_function(after)


NOT_HERE = [
    (  # f is read again
        "narrowing",
        HALVES + "Cast(f, x, RoundMode::CAST_NONE, n);\nExp(f, f, n);\nCast(y, f, RoundMode::CAST_RINT, n);\n"
        "Cast(z, f, RoundMode::CAST_RINT, n);",
    ),
    (  # integers are not half
        "narrowing",
        HALVES.replace("half", "int32_t") + "Cast(f, x, RoundMode::CAST_NONE, n);\nMuls(f, f, s, n);\n"
        "Cast(y, f, RoundMode::CAST_RINT, n);",
    ),
    ("rsqrt", "Sqrt(t, x, n);\nReciprocal(y, t, n);"),  # t could be read by others
    ("square", "Power(y, x, 3.0f, n);"),
    ("reciprocal", "float ONE = 1.0f;\nDuplicate(c, ONE, n);\nDiv(y, c, x, n);"),  # may have changed
    *(
        ("hoisted_element", TYPED + "for (int i = 0; i < m; i++) {\n" + body + "\n}")
        for body in (
            "float v = x.GetValue(i);\nAdds(y, y, v, n);",
            "float v = x.GetValue(0);\nAdds(x, y, v, n);",
            "float v = x.GetValue(0);\nv += 1;\nAdds(y, y, v, n);",
            "float v = x.GetValue(0);\nStep(v);",
            "float v = xGm.GetValue(0);\nAdds(y, y, v, n);",
        )
    ),
    *(
        (name, TYPED + "for (uint32_t i = 0; i < n; i++) {\n" + body + "\n}")
        for name, body in (
            ("vector_fill", "y.SetValue(i, Next());"),
            ("vector_fill", "yGm.SetValue(i, s);"),
            ("vector_fill", "y.SetValue(i + 1, s);"),
            ("vector_fill", "y.SetValue(i, s++);"),
            ("vector_index", "y.SetValue(i, i / 4);"),
            ("vector_arithmetic", "y.SetValue(i, x.GetValue(i + 1) + s);"),
            ("vector_arithmetic", "y.SetValue(i, s - x.GetValue(i));"),
            ("vector_arithmetic", "y.SetValue(i, static_cast<int>(x.GetValue(i)) * s);"),
        )
    ),
    ("vector_fill", TYPED + "for (uint32_t i = 1; i < n; i++) {\n    y.SetValue(i, s);\n}"),
    ("whole_call", "for (int r = 0; r < rows; r++) {\n    Add(y[r * n], x, z[n * r], n);\n}"),
    ("whole_call", "for (int r = 0; r < rows; r++) {\n    Exp(y[r * m], x[r * m], n);\n}"),
    ("whole_call", "for (int r = 0; r < rows; r++) {\n    Adds(y[r * n], x[r * n], v.GetValue(r), n);\n}"),
    ("reduction_tree", LOCAL_T + "ReduceSum(y, t, work, n);\nExp(y, t, n);"),
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
    assert rule_named(name).sites(make_candidate("", in_function(body))) == []


def test_a_buffer_that_another_function_looks_at_is_not_dead():
    compute = in_function("LocalTensor<float> t = tmp.Get<float>();\nMuls(t, a, s, n);\nAdd(d, d, t, n);")
    assert len(rule_named("axpy").sites(make_candidate("", compute))) == 1
    both = compute + "void Other() { Exp(y, tmp.Get<float>(), n); }\n"
    assert rule_named("axpy").sites(make_candidate("", both)) == []
