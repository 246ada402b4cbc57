"""Edits touch nothing but their spans, and rules keep every byte outside of what they say they change."""

from conftest import make_candidate
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rewritten import rule_named

from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Family
from ascend_gym.rewrites.syntax import Edit, splice

_NAMES = ("TILE_LENGTH", "BLOCK_DIM", "BUFFER_NUM", "ubPartNum", "BLOCK_SIZE", "UB_RESERVED_BYTES", "other")
_TILING_STATEMENTS = (
    "uint32_t coreNum = platform.GetCoreNumAiv();",
    "uint32_t coreNum = platform.GetCoreNum() / 2;",
    "uint64_t tileLength = ubSize / parts / 4;",
    "uint64_t tileBlockNum = (ubSize / 32) / parts;",
    "uint64_t tileDataNum = (ubSize / parts) / 512 * 512;",
    "if (tileDataNum >= total) { coreNum = 1; } else { coreNum = coreNum < total ? coreNum : total; }",
    "context->SetBlockDim(BLOCK_DIM);",
    "context->SetTilingKey(1);",
    "platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);",
    "p->GetCoreMemSize(CoreMemType::UB, info.ub);\n    info.ub = info.ub * 2 / 8 / 512 * 512;",
    "if (total <= 4096) coreNum = 1; else coreNum = (coreNum < total / 32) ? coreNum : total / 32;",
)
# Rules whose inverse leads to where they apply again, not to the very start; at all places at once all do.
_RE_ENABLED = frozenset({"block_dim", "block_dim_from_platform", "in_place_compute", "strided_copy"})
_TESTED_WITH_REWINDS = (Family.PIPELINING, Family.COMPUTE)  # in test_rewinds.py
_STATEMENTS = (
    "AscendC::PipeBarrier<PIPE_ALL>();",
    "PipeBarrier<PIPE_V>();  // 屏障",
    "Muls(t, a, s, n);",
    "Add(d, d, t, n);",
    "Mul(d, d, b, n); Add(d, d, c, n);",
    "Relu(d, d, n);",
    "Adds(d, d, 0.0f, n);",
    "Duplicate(t, T(2), n);\n        Div(d, a, t, n);",
    "DataCopyPad(xGm[i], d, {1, static_cast<uint32_t>(n * 4), 0, 0, 0});",
    "for (int i = 0; i < m - 1; i++) {\n Step(i);\n}\nthis->n = tail;\nStep(m - 1);",
    "/* a comment */ int x = 0;",
    "if (TILING_KEY_IS(1)) { A(); } else if (TILING_KEY_IS(2)) { B(); }",
    "DataCopyExtParams p{m, n, 64, 0, 0};\n        DataCopyPad(d, xGm, p, {false, 0, 0, 0});",
    "if (n % 8 == 0) { DataCopy(yGm, d, n); } else { DataCopyPad(yGm, d, {1, n, 0, 0, 0}); }",
    "for (uint32_t i = 0; i < m; i++) {\n DataCopyPad(d[i * n], xGm[o + i * w], {1, n, 0, 0, 0}, z);\n}",
    "for (uint32_t i = 0; i < m; i++) {\n AscendC::DataCopy(yGm[i * w], d[n * i + 8], n);\n}",
    "pipe.InitBuffer(buf, n * sizeof(T));",
    "pipe.InitBuffer(queue, 2, (n + 31) / 32 * 32 + 256);",
    "xGm.SetGlobalBuffer((__gm__ T*)x, n);",
    "this->yGm.SetGlobalBuffer(y);\n        yGm.SetL2CacheHint(AscendC::CacheMode::CACHE_MODE_DISABLE);",
)


@st.composite
def _edited_texts(draw):
    parts = draw(
        st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6), st.text(max_size=6)), max_size=5)
    )
    text, edits, expected = "", [], ""
    for kept, replaced, replacement in parts:
        text, expected = text + kept, expected + kept
        start = len(text.encode())
        text, expected = text + replaced, expected + replacement
        if replaced or replacement:
            edits.append(Edit(start, len(text.encode()), replacement))
    return text, draw(st.permutations(edits)), expected


@given(_edited_texts())
def test_splice_replaces_the_spans_and_nothing_else(case):
    text, edits, expected = case
    starts = [edit.start_byte for edit in edits]
    if len(set(starts)) == len(starts):
        assert splice(text, edits) == expected


@st.composite
def _candidates(draw):
    constants = draw(
        st.lists(
            st.tuples(st.sampled_from(_NAMES), st.integers(1, 4096)), max_size=4, unique_by=lambda c: c[0]
        )
    )
    host = "".join(f"constexpr uint32_t {name} = {value};\n" for name, value in constants)
    host_body = "\n    ".join(draw(st.lists(st.sampled_from(_TILING_STATEMENTS), max_size=4)))
    number = draw(st.integers(1, 3))
    body = "\n        ".join(draw(st.lists(st.sampled_from(_STATEMENTS), max_size=8)))
    kernel = (
        f"constexpr int32_t BUFFER_NUM = {number};\nclass K {{\n    void Compute(int n)\n    {{\n"
        f"        LocalTensor<T> t = q.AllocTensor<T>();\n        {body}\n    }}\n}};\n"
    )
    return make_candidate(
        f"{host}int f(gert::TilingContext* context)\n{{\n    {host_body}\n    return 0;\n}}\n", kernel
    )


@settings(max_examples=60)
@given(_candidates())
def test_rules_change_the_bytes_of_their_edits_and_no_others(candidate):
    before = candidate.texts
    for rule in RULES:
        for site in rule.sites(candidate):
            for choice in site.choices:
                after = rule.apply(candidate, site, choice).texts
                assert after != before
                for path, text in before.items():
                    edits = sorted(
                        (edit.edit for edit in choice.edits if edit.path == path), key=lambda e: e.start_byte
                    )
                    assert _outside(text.encode(), edits, after[path].encode())


def _outside(before, edits, after):
    """Walk both texts: bytes between the edits must be equal, the edits' own must be the new text."""
    position = 0
    for edit in edits:
        kept = before[position : edit.start_byte]
        new = edit.text.encode()
        if not after.startswith(kept + new):
            return False
        after, position = after[len(kept) + len(new) :], edit.end_byte
    return after == before[position:]


@settings(max_examples=25)
@given(_candidates())
def test_sites_are_the_same_each_time(candidate):
    for rule in RULES:
        assert rule.sites(candidate) == rule.sites(candidate)


@settings(max_examples=25)
@given(_candidates())
@example(make_candidate("constexpr uint32_t BUFFER_NUM = 6;\n", "constexpr int32_t BUFFER_NUM = 1;\n"))
def test_what_a_rule_with_an_inverse_does_can_be_undone(candidate):
    for rule in RULES:
        if rule.inverse is None or rule.family in _TESTED_WITH_REWINDS:
            continue
        back = rule_named(rule.inverse)
        for site in rule.sites(candidate):
            for choice in (choice for choice in site.choices if choice.forward):
                rewritten = rule.apply(candidate, site, choice)
                undone = [back.apply(rewritten, s, way) for s in back.sites(rewritten) for way in s.choices]
                if rule.name in _RE_ENABLED or site.covers_all:
                    assert any(_forward_choices(rule, way_back) for way_back in undone)
                else:
                    assert candidate in undone


@settings(max_examples=25)
@given(_candidates())
def test_what_a_rewind_of_copies_does_its_rule_can_undo(candidate):
    for name, rewind_name in (("strided_copy", "row_copies"), ("aligned_copy", "padded_copy")):
        rule, rewind = rule_named(name), rule_named(rewind_name)
        for site in rewind.sites(candidate):
            for choice in site.choices:
                assert not choice.forward
                assert _forward_choices(rule, rewind.apply(candidate, site, choice))


def _forward_choices(rule, candidate):
    return [choice for site in rule.sites(candidate) for choice in site.choices if choice.forward]
