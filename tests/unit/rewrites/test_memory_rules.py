"""Rules about UB: the exact change, and where they must not apply."""

import pytest
from conftest import make_candidate
from rewritten import in_function, kernel_after, rule_named

LOCAL_T = "LocalTensor<float> t = q.AllocTensor<float>();\n"

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
    assert kernel_after("in_place_compute", IN_PLACE) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("queue.FreeTensor(x);", "Add(y, y, x, n);\n        queue.FreeTensor(x);"),
        (
            "Add(y, z, scaled, n);\n        queue.FreeTensor(x);",
            "queue.FreeTensor(x);\n        Add(y, z, scaled, n);",
        ),
        ("LocalTensor<T> scaled", "LocalTensor<float> scaled"),
    ],
)
def test_in_place_compute_needs_a_source_that_is_done_with(old, new):
    assert rule_named("in_place_compute").sites(make_candidate("", IN_PLACE.replace(old, new))) == []


SEPARATE = """\
class K {
    void Init()
    {
        pipe.InitBuffer(queue, 1, n * 4);
    }
    void Compute()
    {
        LocalTensor<T> x = queue.DeQue<T>();
        Muls(x, x, alpha, n);
        Add(y, z, x, n);
        queue.FreeTensor(x);
    }
    TQue<TPosition::VECIN, 1> queue;
};
"""


def test_separate_result_gives_a_buffer_that_in_place_compute_drops():
    rewound = kernel_after("separate_result", SEPARATE)
    changes = {
        "        Muls(x, x": "        LocalTensor<T> xResult = xResultBuf.Get<T>();\n        Muls(xResult, x",
        "z, x, n": "z, xResult, n",
        "n * 4);\n": "n * 4);\n        pipe.InitBuffer(xResultBuf, n * 4);\n",
        "1> queue;\n": "1> queue;\n    AscendC::TBuf<AscendC::TPosition::VECCALC> xResultBuf;\n",
    }
    expected = SEPARATE
    for old, new in changes.items():
        expected = expected.replace(old, new)
    assert rewound == expected
    assert kernel_after("in_place_compute", rewound) == SEPARATE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("queue.DeQue<T>()", "other"),
        ("Add(y, z, x, n);", ""),
        ("Muls(x, x", "Muls(x, z"),
        ("    TQue<TPosition::VECIN, 1> queue;\n", ""),
    ],
)
def test_separate_result_needs_a_member_queue_and_a_later_use(old, new):
    assert rule_named("separate_result").sites(make_candidate("", SEPARATE.replace(old, new))) == []


def test_a_buffer_with_other_uses_stays_when_computing_in_place():
    used = IN_PLACE.replace(
        "void Compute()", "void More() { Exp(y, tmpBuf.Get<T>(), n); }\n    void Compute()"
    )
    after = kernel_after("in_place_compute", used)
    assert "Muls(x, x, alpha, n);\n        Add(y, z, x, n);" in after
    assert "InitBuffer(tmpBuf, 64)" in after


KERNEL_BODIES = [
    ("bank_padding", "pipe.InitBuffer(q, 2, n * 4);", "pipe.InitBuffer(q, 2, n * 4 + 256);"),
    ("bank_padding", "pipe->InitBuffer(buf, size + 256);", "pipe->InitBuffer(buf, size);"),
    (
        "buffer_order",
        "p.InitBuffer(a, 1, n); // x\np.InitBuffer(b, 1, n);\n// y\np.InitBuffer(c, n);\np.InitBuffer(d, m);",
        "p.InitBuffer(c, n); // x\np.InitBuffer(d, m);\n// y\np.InitBuffer(a, 1, n);\np.InitBuffer(b, 1, n);",
    ),
]


@pytest.mark.parametrize(("name", "before", "after"), KERNEL_BODIES)
def test_memory_rule_makes_exactly_this_change(name, before, after):
    assert kernel_after(name, in_function(before)) == in_function(after)


NOT_HERE = [
    ("bank_padding", "pipe.InitBuffer(buf, wide ? 64 : 32);\npipe.InitBuffer(q, 2, n << 2);"),
    ("buffer_order", "pipe.InitBuffer(a, n);\npipe.InitBuffer(b, n);"),
    ("buffer_order", "pipe.InitBuffer(a, n);\npipe.InitBuffer(b, n);\nother.InitBuffer(c, n);"),
    (
        "buffer_order",
        "pipe.InitBuffer(a, n);\nx = a.Get<T>();\npipe.InitBuffer(b, n);\npipe.InitBuffer(c, n);",
    ),
    ("in_place_compute", LOCAL_T + "Muls(t, a, s, n);"),
]


@pytest.mark.parametrize(("name", "body"), NOT_HERE)
def test_memory_rule_leaves_other_code_alone(name, body):
    assert rule_named(name).sites(make_candidate("", in_function(body))) == []
