"""Waits for copies out that queues make needless: the exact change, and where they must stay."""

import pytest
from conftest import make_candidate
from rewritten import kernel_after, rewrites, rule_named

WAIT = """\
        event_t done = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE3_MTE2));
        SetFlag<HardEvent::MTE3_MTE2>(done);
        WaitFlag<HardEvent::MTE3_MTE2>(done);
"""
IN_PLACE = f"""\
template <typename T>
class K {{
    void Init()
    {{
        pipe.InitBuffer(this->data, BUFFERS, 64);
    }}
    void CopyIn()
    {{
        LocalTensor<T> x = this->data.template AllocTensor<T>();
        DataCopy(x, xGm, n);
        data.EnQue(x);
    }}
    void Compute()
    {{
        LocalTensor<T> x = Base::data.template DeQue<T>();
        Exp(x, x, n);
        SetFlag<HardEvent::V_MTE3>(ready);
        WaitFlag<HardEvent::V_MTE3>(ready);
        DataCopy(yGm, x, n);
{WAIT}        Base::data.FreeTensor(x);
    }}
    TQue<QuePosition::VECIN, BUFFERS> data;
}};
"""
BOUND = (
    IN_PLACE.replace(WAIT, "")
    .replace("data.EnQue(x)", "data.template EnQue<QuePosition::GM, QuePosition::VECIN>(x)")
    .replace("DeQue<T>", "DeQue<QuePosition::GM, QuePosition::VECIN, T>")
    .replace("TQue<QuePosition::VECIN,", "TQueBind<QuePosition::VECIN, QuePosition::VECOUT,")
)
FREED_EARLY = """\
        data.FreeTensor(x);
        SetFlag<HardEvent::V_MTE3>(ready);
        WaitFlag<HardEvent::V_MTE3>(ready);
"""
FREED_LATER = """\
        SetFlag<HardEvent::V_MTE3>(ready);
        WaitFlag<HardEvent::V_MTE3>(ready);
        data.FreeTensor(x);
"""


def test_a_queue_that_is_copied_out_of_is_bound_to_copies_out():
    assert kernel_after("copy_out_wait", IN_PLACE) == BOUND


def test_a_queue_of_results_keeps_its_kind():
    results = IN_PLACE.replace("VECIN", "VECOUT")
    assert kernel_after("copy_out_wait", results) == results.replace(WAIT, "")


def test_an_event_that_is_used_elsewhere_stays_declared():
    used = IN_PLACE.replace("VECIN", "VECOUT").replace(
        "(x);\n    }\n    TQue", "(x);\n        Use(done);\n    }\n    TQue"
    )
    assert "event_t done" in kernel_after("copy_out_wait", used)


def test_tensors_that_are_not_copied_out_are_freed_behind_the_vector_unit():
    other = f"    void Other()\n    {{\n{FREED_EARLY}    }}\n    TQue<"
    after = kernel_after("copy_out_wait", IN_PLACE.replace("    TQue<", other))
    assert FREED_LATER in after
    assert FREED_EARLY not in after


@pytest.mark.parametrize(
    ("present", "other"),
    [
        (
            "    TQue<",
            "    void Other()\n    {\n        data.FreeTensor(x);\n    }\n    TQue<",
        ),  # read by whom?
        ("    TQue<", "    void Other()\n    {\n        Helper(data);\n    }\n    TQue<"),
        ("    TQue<", "    void Other()\n    {\n        data.DeQue(x);\n    }\n    TQue<"),
        ("BUFFERS> data;", "BUFFERS> data, other;"),
        ("    TQue<", "    TQue<QuePosition::VECIN, 1> data;\n    TQue<"),  # which of the two?
        ("SetFlag<HardEvent::MTE3_MTE2>(done);\n", ""),
        ("WaitFlag<HardEvent::MTE3_MTE2>(done)", "WaitFlag<HardEvent::MTE3_MTE2>(other)"),
        (WAIT, WAIT.replace("MTE3_MTE2", "V_MTE2")),
        (WAIT, WAIT + "        Use(x);\n"),
    ],
)
def test_the_wait_stays_where_something_else_may_need_it(present, other):
    assert rule_named("copy_out_wait").sites(make_candidate("", IN_PLACE))
    assert rule_named("copy_out_wait").sites(make_candidate("", IN_PLACE.replace(present, other))) == []


def test_queues_are_handed_over_one_by_one_and_all_at_once():
    second = IN_PLACE.replace("data", "more").replace("class K", "class L")
    labels = [site for site, _, _ in rewrites(rule_named("copy_out_wait"), kernel=IN_PLACE + second)]
    assert len(labels) == 3
    assert labels[-1] == "all 2 queues that are copied out of"


def test_the_inverse_lets_copies_in_wait_and_the_rule_takes_that_away():
    candidate = make_candidate("", BOUND)
    rule = rule_named("copy_out_wait")
    (site,) = (back := rule_named(rule.inverse)).sites(candidate)
    waiting = back.apply(candidate, site, site.choices[0])
    assert waiting.kernel_text.count("MTE3_MTE2>(static_cast<event_t>") == 2
    (site,) = rule.sites(waiting)
    assert rule.apply(waiting, site, site.choices[0]) == candidate
