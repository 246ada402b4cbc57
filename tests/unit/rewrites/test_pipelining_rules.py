"""Rules about overlap: the exact change, and where they must not apply."""

import pytest
from conftest import make_candidate
from rewritten import HOST, KERNEL, in_function, kernel_after, rewrites, rule_named

# rule, body of a kernel function before, the same after the only site's first choice
FLAGS = "SetFlag<HardEvent::V_S>(e);\nWaitFlag<HardEvent::V_S>(e);\n"
SET, WAIT, _ = FLAGS.split("\n")
TAKE_Y = "LocalTensor<T> y = out.AllocTensor<T>();"
TAKE_X = "LocalTensor<T> x = in.DeQue<T>();\n"

KERNEL_BODIES = [
    (  # into UB, so by MTE2
        "event_insertion",
        f"{TAKE_X}A::DataCopy(x, xGm[i], n);",
        f"{TAKE_X}A::DataCopy(x, xGm[i], n);\nA::SetFlag<A::HardEvent::MTE2_S>(EVENT_ID0);\n"
        "A::WaitFlag<A::HardEvent::MTE2_S>(EVENT_ID0);",
    ),
    (
        "event_insertion",
        f"{TAKE_X}DataCopy(xGm[i], x, n);",
        f"{TAKE_X}DataCopy(xGm[i], x, n);\nSetFlag<HardEvent::MTE3_S>(EVENT_ID0);\n"
        "WaitFlag<HardEvent::MTE3_S>(EVENT_ID0);",
    ),
    (
        "barrier_hoisting",
        "for (int i = 0; i < m; i++) {\n    Add(y[i], y[i], x, n);\n    PipeBarrier<PIPE_V>();\n}\nDone();",
        "for (int i = 0; i < m; i++) {\n    Add(y[i], y[i], x, n);\n}\nPipeBarrier<PIPE_V>();\nDone();",
    ),
    ("event_removal", f"Exp(y, x, n);\n{FLAGS}v = y.GetValue(0);", "Exp(y, x, n);\nv = y.GetValue(0);"),
    (
        "event_removal",
        "set_flag(PIPE_V, PIPE_S, EVENT_ID0);\nwait_flag(PIPE_V, PIPE_S, EVENT_ID0);\nDone();",
        "Done();",
    ),
    (
        "scalar_wait_later",
        f"{FLAGS}Exp(z, x, n);\nAdds(z, z, s, n);\nv = y.GetValue(0);",
        f"{SET}\nExp(z, x, n);\nAdds(z, z, s, n);\n{WAIT}\nv = y.GetValue(0);",
    ),
    (
        "late_acquire",
        f"{TAKE_Y}\nExp(z, x, n);\nPipeBarrier<PIPE_V>();\nAdd(y, z, x, n);",
        f"Exp(z, x, n);\nPipeBarrier<PIPE_V>();\n{TAKE_Y}\nAdd(y, z, x, n);",
    ),
    (
        "early_release",
        f"{TAKE_X}Exp(z, x, n);\nAdds(z, z, s, n);\nin.FreeTensor(x);",
        f"{TAKE_X}Exp(z, x, n);\nin.FreeTensor(x);\nAdds(z, z, s, n);",
    ),
    (
        "loop_unrolling",
        "for (int i = 0; i < m; ++i) {\n    sum += x.GetValue(i);\n}",
        "{\n    int i = 0;\n    for (; i + 1 < m; i += 2) {\n        {\n            sum += x.GetValue(i);\n"
        "        }\n        {\n            sum += x.GetValue((i + 1));\n        }\n    }\n"
        "    for (; i < m; i++) {\n        sum += x.GetValue(i);\n    }\n}",
    ),
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
]


@pytest.mark.parametrize(("name", "before", "after"), KERNEL_BODIES)
def test_kernel_rule_makes_exactly_this_change(name, before, after):
    assert kernel_after(name, in_function(before)) == in_function(after)


NOT_HERE = [
    ("event_insertion", "DataCopy(held, other, n);"),  # in which direction?
    (
        "barrier_hoisting",
        "for (int i = 0; i < m; i++) {\n    PipeBarrier<PIPE_V>();\n    Add(y, y, x, n);\n}",
    ),
    ("event_removal", "SetFlag<HardEvent::V_S>(e);\nWaitFlag<HardEvent::V_S>(f);"),
    ("event_removal", "SetFlag<HardEvent::V_S>(e);\nExp(y, x, n);\nWaitFlag<HardEvent::V_S>(e);"),
    ("scalar_wait_later", f"{FLAGS}Adds(z, z, y.GetValue(0), n);"),
    ("scalar_wait_later", f"{FLAGS}Step(z);"),
    ("scalar_wait_later", FLAGS.replace("V_S", "V_MTE3") + "Exp(z, x, n);"),
    ("late_acquire", f"{TAKE_Y}\nAdd(y, z, x, n);"),
    ("late_acquire", f"{TAKE_Y}\nStep();\nAdd(y, z, x, n);"),  # Step may use the queue
    ("late_acquire", f"{TAKE_Y}\nT v = out.GetSize();\nExp(z, x, n);"),
    ("early_release", f"{TAKE_X}Exp(z, x, n);\nin.FreeTensor(x);"),
    ("early_release", f"{TAKE_X}auto v = x[8];\nExp(z, v, n);\nin.FreeTensor(x);"),  # v looks at x
    ("early_release", "Exp(z, z, n);\nin.FreeTensor(x);"),  # a member?
    ("loop_unrolling", "for (int i = 0; i < m; i++) {\n    m = x.GetValue(i);\n}"),
    (
        "loop_unrolling",
        "for (int i = 0; i < m; i++) {\n    if (x.GetValue(i) > 0) {\n        break;\n    }\n}",
    ),
    ("loop_unrolling", "for (int i = 0; i < m; i++) {\n    Step(x.GetValue(i));\n}"),
    ("prefetch", "for (int i = 0; i < m; i++) {\n    CopyIn(i);\n    Compute(i);\n}"),  # functions unseen
    ("queue_buffers", "pipe.InitBuffer(inQueue, BUFFER_NUM, n);\npipe.InitBuffer(buf, n);"),
    ("full_barrier_removal", "PipeBarrier<PIPE_V>();\n// PipeBarrier<PIPE_ALL>();"),
    ("full_barrier_narrowing", "PipeBarrier<PIPE_MTE3>();"),
    ("vector_barrier_removal", "PipeBarrier<PIPE_ALL>();"),
    ("loop_tail_folding", "for (int i = 0; i < m; i++) {\n    Step(i);\n}\nStep(m - 1);"),
    ("loop_tail_folding", "for (int i = 0; i < m - 1; i++) {\n    Step(i);\n}\nOther(m - 1);"),
    ("loop_tail_folding", "for (int i = 0; i < m - 2; i++) {\n    Step(i);\n}\nStep(m - 2);"),
]


@pytest.mark.parametrize(("name", "body"), NOT_HERE)
def test_kernel_rule_leaves_other_code_alone(name, body):
    assert rule_named(name).sites(make_candidate("", in_function(body))) == []


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
    ways = rewrites(rule_named("queue_buffers"), kernel=QUEUES)
    labels = [(site, choice) for site, choice, _ in ways]
    assert labels == [
        (f"{KERNEL}:4 in has 1", "1 -> 2 buffers"),
        (f"{KERNEL}:5 out has 1", "1 -> 2 buffers"),
        (f"all 2 queues with 1 of {KERNEL}", "1 -> 2 buffers"),
        (f"{KERNEL}:6 ready has 2", "2 -> 1 buffers"),
    ]
    after = ways[2][2][KERNEL]
    assert "InitBuffer(in, 2, 64)" in after
    assert "VECIN, 2> in" in after
    assert "InitBuffer(out, 2, 64)" in after
    assert "VECOUT, DEPTH> out" in after
    assert ways[3][2][KERNEL] == QUEUES.replace("(ready, 2", "(ready, 1").replace("2> ready", "1> ready")


def test_all_barriers_at_once_come_last():
    body = "A();\nPipeBarrier<PIPE_ALL>();\nB();\nPipeBarrier<PIPE_ALL>();"
    ways = rewrites(rule_named("full_barrier_removal"), kernel=in_function(body))
    assert [site for site, _, _ in ways][-1] == f"all 2 PIPE_ALL barriers of {KERNEL}"
    assert ways[-1][2][KERNEL] == in_function("A();\nB();")


def test_buffer_count_of_the_kernel():
    kernel = "constexpr int32_t BUFFER_NUM = 1;\n"
    (site,) = rule_named("buffer_count").sites(make_candidate("", kernel))
    assert [(choice.label, choice.forward) for choice in site.choices] == [
        ("BUFFER_NUM: 1 -> 2", True),
        ("BUFFER_NUM: 1 -> 3", False),
        ("BUFFER_NUM: 1 -> 4", False),
    ]
    assert kernel_after("buffer_count", kernel) == "constexpr int32_t BUFFER_NUM = 2;\n"
    assert rule_named("buffer_count").sites(make_candidate("", "constexpr int BUFFER_NUM = 9;\n")) == []


def test_shared_buffer_count_keeps_host_and_kernel_alike():
    tiling, kernel = (
        "const uint64_t BUFFER_NUM = 1;\n",
        "class K {\n    constexpr static int32_t bufferNum = 1;\n};\n",
    )
    _, _, after = rewrites(rule_named("shared_buffer_count"), tiling, kernel)[0]
    assert after == {HOST: tiling.replace("1", "2"), KERNEL: kernel.replace("1", "2")}
    assert rule_named("shared_buffer_count").sites(make_candidate(tiling, kernel.replace("1", "2"))) == []


PASSES = """\
constexpr int32_t BUFFER_NUM = 2;
class K {
    void Init()
    {
        pipe.InitBuffer(this->inQueue, BUFFER_NUM, 1024);
    }
    void Process()
    {
        for (uint32_t o = 0; o < total; o += tile) {
            const uint32_t count = total - o;
            CopyIn(o, count);
            Compute(o);
        }
    }
    void CopyIn(uint32_t o, uint32_t count)
    {
        LocalTensor<half> x = inQueue.AllocTensor<half>();
        DataCopy(x, xGm[o], count);
    }
    void Compute(uint32_t o)
    {
        uint32_t at = o;
        at++;
    }
};
"""
AHEAD = """\
        if (0 < total) {
            const uint32_t count = total - 0;
            CopyIn(0, count);
        }
        for (uint32_t o = 0; o < total; o += tile) {
            const uint32_t count = total - o;
            if ((o + tile) < total) {
                const uint32_t count = total - (o + tile);
                CopyIn((o + tile), count);
            }
            Compute(o);
        }
"""


def test_prefetch_copies_a_pass_ahead_under_a_condition():
    after = kernel_after("prefetch", PASSES)
    loop = PASSES[PASSES.index("        for") : PASSES.index("    }\n    void CopyIn")]
    assert after == PASSES.replace(loop, AHEAD)


@pytest.mark.parametrize(
    ("present", "other"),
    [
        ("BUFFER_NUM = 2", "BUFFER_NUM = 1"),
        ("Buffer(this->inQueue, BUFFER_NUM", "Buffer(this->inQueue, 1"),
        ("Buffer(this->inQueue", "Buffer(this->outQueue"),
        ("constexpr int32_t BUFFER_NUM", "int32_t BUFFER_NUM"),
    ],
)
def test_prefetch_needs_a_second_buffer_that_can_be_seen(present, other):
    assert rule_named("prefetch").sites(make_candidate("", PASSES))
    assert rule_named("prefetch").sites(make_candidate("", PASSES.replace(present, other))) == []


def test_prefetch_needs_functions_that_keep_members():
    changed = PASSES.replace("at++;", "this->at++;")
    assert rule_named("prefetch").sites(make_candidate("", changed)) == []


def _with_depth(depth):
    """Return the kernel with a declared queue, after another class with a queue of that name."""
    other = "class Other {\n    TQue<QuePosition::VECIN, 1> inQueue;\n};\n"
    queue = f"    AscendC::TQue<AscendC::QuePosition::VECIN, {depth}> inQueue;\n}};\n"
    return other + PASSES.removesuffix("};\n") + queue


def test_prefetch_deepens_the_queue_of_its_class_and_a_removal_leaves_it_deep():
    (site,) = (rule := rule_named("prefetch")).sites(make_candidate("", _with_depth(1)))
    after = rule.apply(make_candidate("", _with_depth(1)), site, site.choices[0])
    loop = PASSES[PASSES.index("        for") : PASSES.index("    }\n    void CopyIn")]
    assert after.kernel_text == _with_depth(2).replace(loop, AHEAD)
    (site,) = (back := rule_named(rule.inverse)).sites(after)
    assert back.apply(after, site, site.choices[0]).kernel_text == _with_depth(2)


@pytest.mark.parametrize(("depth", "offered"), [("BUFFER_NUM", 1), ("DEPTH", 0), ("BUFFER_NUM - 1", 0)])
def test_prefetch_needs_a_depth_that_can_be_seen(depth, offered):
    assert len(rule_named("prefetch").sites(make_candidate("", _with_depth(depth)))) == offered


def test_each_class_has_its_own_queue_to_deepen():
    one = "class A {\n    void F() { pipe.InitBuffer(q, 1, 64); }\n    TQue<VECIN, 1> q;\n};\n"
    candidate = make_candidate("", one + one.replace("class A", "class B"))
    rule = rule_named("queue_buffers")
    sites = [site for site in rule.sites(candidate) if not site.covers_all]
    deeper = [rule.apply(candidate, site, site.choices[0]).kernel_text for site in sites]
    two = one.replace("q, 1", "q, 2").replace("N, 1", "N, 2")
    assert deeper == [two + one.replace("class A", "class B"), one + two.replace("class A", "class B")]
