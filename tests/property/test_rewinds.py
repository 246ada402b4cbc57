"""Pipelining and compute: what a rewind does, its rule can undo; and the other way round if it is exact."""

import pytest
from conftest import make_candidate
from hypothesis import given, settings
from hypothesis import strategies as st
from rewritten import rule_named

from ascend_gym.rewrites.library import REWINDS, RULES
from ascend_gym.rewrites.rule import Family, Side

FAMILIES = (Family.PIPELINING, Family.COMPUTE)
RULE_OF = {rule.inverse: rule for rule in RULES if rule.family in FAMILIES}
OWN_REWINDS = [rule for rule in REWINDS if rule.family in FAMILIES]

# Rewinds after which the rule restores the code up to how a type or a bound is written.
REWRITTEN = {
    "broadcast_operand",
    "early_acquire",
    "identity_insertion",
    "late_release",
    "pieces",
    "reciprocal_split",
    "relu_split",
    "rsqrt_split",
    "scalar_arithmetic",
    "scalar_fill",
    "scalar_index",
    "tail_splitting",
    "widening",
}
# Rules after which a rewind restores the very text that was there.
EXACT = (
    "buffer_count",
    "queue_buffers",
    "full_barrier_narrowing",
    "barrier_hoisting",
    "fused_mul_add",
    "hoisted_duplicate",
    "hoisted_element",
    "loop_unrolling",
    "reduction_tree",
    "scalar_wait_later",
    "tiling_data_in_place",
)
_STATEMENTS = (
    "AscendC::PipeBarrier<PIPE_ALL>();",
    "AscendC::PipeBarrier<PIPE_V>();",
    "AscendC::PipeBarrier<PIPE_MTE3>();",
    "AscendC::Muls(t, a, s, n);",
    "AscendC::Add(d, d, t, n);",
    "AscendC::Mul(d, d, b, n);\nAscendC::Add(d, d, c, n);",
    "AscendC::Mul(d, a, a, n);",
    "AscendC::FusedMulAdd(d, a, b, n);",
    "AscendC::AddRelu(d, a, b, n);",
    "AscendC::Rsqrt(d, a, n);",
    "AscendC::Reciprocal(d, b, n);",
    "AscendC::Axpy(d, a, s, n);",
    "AscendC::MulAddDst(d, a, b, n);",
    "AscendC::Muls(d, a, (s) * (r), n);",
    "AscendC::Duplicate(d, s, n);",
    "AscendC::LocalTensor<half> g = q.DeQue<half>();\nAscendC::LocalTensor<half> h = p.AllocTensor<half>();\n"
    "AscendC::Exp(h, g, n);",
    "AscendC::CreateVecIndex(d, 3.0f, n);",
    "AscendC::ReduceSum(d, t, w, n);",
    "AscendC::ReduceMax(d, a, workBuf.Get<float>(), n);",
    "q.FreeTensor(t);",
    "e.FreeTensor(t);",
    "o.EnQue(t);",
    "AscendC::LocalTensor<float> z = p.AllocTensor<float>();",
    "AscendC::SetFlag<AscendC::HardEvent::V_S>(EVENT_ID1);\nAscendC::WaitFlag<AscendC::HardEvent::V_S>(EVENT_ID1);",
    "AscendC::Exp(d, a, n);",
    "for (int i = 0; i < m; i++) {\n    AscendC::Add(d[i * n], a[i * n], b[i * n], n);\n"
    "    AscendC::PipeBarrier<PIPE_V>();\n}",
    "for (int i = 0; i < m; i++) {\n    AscendC::Duplicate(c, 0.0f, n);\n    AscendC::Max(d, a, c, n);\n}",
    "for (int i = 0; i < m; i++) {\n    float v = a.GetValue(0);\n    d.SetValue(i, v);\n}",
    "for (int i = 0; i < m; i++) {\n    CopyIn(i);\n    Work(i);\n}",
    "for (int i = 0; i < m; i++) {\n    Load(i);\n    Work(i);\n}",
    "for (uint32_t o = 0; o < m; o += n) {\n    const uint32_t rest = m - o;\n    CopyIn(o, rest);\n"
    "    AscendC::PipeBarrier<PIPE_ALL>();\n    Work(o);\n}",
)


_EXAMPLES = tuple(
    text
    for rule in (*RULES, *REWINDS)
    if rule.family in FAMILIES and rule.side is Side.KERNEL
    for example in rule.examples
    for text in example
)

_HOST = (
    "BEGIN_TILING_DATA_DEF(ToyTilingData)\nTILING_DATA_FIELD_DEF_ARR(uint64_t, 50, lengths);\n"
    "END_TILING_DATA_DEF;\nREGISTER_TILING_DATA_CLASS(Toy, ToyTilingData)\n"
)


def _candidate(body, count):
    body = body.replace("\n", "\n        ")
    tensors = "".join(f", const AscendC::LocalTensor<float>& {name}" for name in "abcdw")
    kernel = (
        f"constexpr int32_t BUFFER_NUM = {count};\nclass K {{\n"
        f"    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> e;\n"
        f"    void Init() {{ pipe.InitBuffer(q, {count}, 64); pipe.InitBuffer(workBuf, 64); }}\n"
        "    void CopyIn(uint32_t o, uint32_t rest)\n    {\n        uint32_t x = o;\n        x++;\n"
        "        AscendC::LocalTensor<float> y = q.AllocTensor<float>();\n    }\n"
        "    void Load(uint32_t o)\n    {\n        AscendC::LocalTensor<float> l = p.AllocTensor<float>();\n"
        "        p.EnQue(l);\n        l = p.DeQue<float>();\n        p.FreeTensor(l);\n    }\n"
        "    void Work(int i)\n    {\n        AscendC::Exp(k, k, i);\n    }\n"
        f"    void Compute(int n, float s, float r{tensors})\n    {{\n"
        f"        AscendC::LocalTensor<float> t = q.AllocTensor<float>();\n        {body}\n    }}\n}};\n"
        "void toy(GM_ADDR tiling)\n{\n    GET_TILING_DATA(data, tiling);\n    Sum(&data, data.lengths);\n}\n"
    )
    return make_candidate(_HOST, kernel)


@st.composite
def _candidates(draw):
    body = "\n".join(draw(st.lists(st.sampled_from(_STATEMENTS), min_size=1, max_size=6)))
    return _candidate(body, draw(st.integers(1, 2)))


def _ways(rule, candidate):
    return [rule.apply(candidate, site, choice) for site in rule.sites(candidate) for choice in site.choices]


@pytest.mark.parametrize("rewind", OWN_REWINDS, ids=lambda rule: rule.name)
@settings(max_examples=10)
@given(candidate=_candidates())
def test_what_a_rewind_does_its_rule_can_undo(rewind, candidate):
    rule = RULE_OF[rewind.name]
    for site in rewind.sites(candidate):
        for choice in site.choices:
            rewound = rewind.apply(candidate, site, choice)
            undone = _ways(rule, rewound)
            assert rewound != candidate
            assert undone
            assert candidate in undone or rewind.name in REWRITTEN or site.covers_all


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=10)
@given(candidate=_candidates())
def test_what_an_exact_rule_does_its_inverse_restores(name, candidate):
    rule = rule_named(name)
    for site in (site for site in rule.sites(candidate) if not site.covers_all):
        for choice in site.choices:
            if choice.forward:
                assert candidate in _ways(rule_named(rule.inverse), rule.apply(candidate, site, choice))


def test_every_rewind_applies_to_the_statements_or_to_what_its_rule_makes_of_them():
    reduced = "AscendC::ReduceSum(d, t, w, n);"
    others = "\n".join(line for line in _STATEMENTS if line not in (reduced, "o.EnQue(t);"))
    bodies = [(reduced, 1), (others, 1), (others, 2), *((example, 1) for example in _EXAMPLES)]
    candidates = [_candidate(body, count) for body, count in bodies]
    silent = [rewind for rewind in OWN_REWINDS if not any(map(rewind.sites, candidates))]
    assert len(silent) < len(OWN_REWINDS) / 2
    for rewind in silent:
        optimised = [after for candidate in candidates for after in _ways(RULE_OF[rewind.name], candidate)]
        assert any(map(rewind.sites, optimised)), (
            f"no statement of _STATEMENTS and no example of a rule gives {rewind.name} a site: add one"
        )
