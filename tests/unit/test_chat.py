"""Episodes as conversations: what a model is told, and what its answers come to."""

import pytest
from conftest import FakeEvaluator, make_spec
from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.chat.session import ChatSession
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import Status

KERNEL = "void Compute()\n{\n    Exp(y, x, n);\n    Ln(y, y, n);\n}\n"
SPEC = make_spec(kernel=KERNEL)


def _session(evaluator=None, **options):
    return ChatSession(options.pop("operator", SPEC), evaluator=evaluator or FakeEvaluator(), **options)


def _edit(search, replace, path="op_kernel/toy.cpp"):
    return f"### FILE: {path}\n<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


FASTER = _edit("    Ln(y, y, n);", "    Ln(y, y, n);  // latency: 50")
SLOWER = _edit("    Ln(y, y, n);", "    Ln(y, y, n);  // latency: 200")


def test_an_episode_opens_with_rules_and_state():
    system, state = _session(budget=3).reset()
    assert (system.role, state.role) == ("system", "user")
    assert "<<<<<<< SEARCH" in system.content
    for told in ("core/toy", "small: (x float16 8x128)", "### FILE: op_kernel/toy.cpp", KERNEL, "100.00 us"):
        assert told in state.content
    assert "first attempt" in state.content
    assert "next answer: 3." in state.content


def test_a_faster_answer_is_rewarded_and_is_what_the_next_one_edits():
    session = _session()
    session.reset()
    turn = session.step(FASTER)
    assert turn.reward == pytest.approx(0.693, abs=1e-3)
    assert "2.000 times as fast as the fastest before. It is the fastest so far." in turn.message.content
    assert "// latency: 50" in turn.message.content
    assert session.step(
        _edit("    Ln(y, y, n);  // latency: 50", "    Ln(y, y, n);  // latency: 25")
    ).reward == pytest.approx(0.693, abs=1e-3)
    assert session.episode.speedup == pytest.approx(4.0)


def test_a_slower_answer_is_not_kept():
    session = _session()
    session.reset()
    turn = session.step(SLOWER)
    assert turn.reward == 0.0
    assert "0.500 times as fast" in turn.message.content
    assert "// latency: 200" not in turn.message.content


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "the answer is empty"),
        ("Make the tiles larger.", "there is none"),
        (_edit("    Sqrt(y, x, n);", "    Rsqrt(y, x, n);"), "occurs 0 times"),
        (_edit("    Ln(y, y, n);", "    Ln(y, y, n);", path="op_kernel/other.cpp"), "no file"),
        (_edit("    Ln(y, y, n);", "    Ln(y, y, n);"), "leaves every file as it was"),
        (FASTER.replace(">>>>>>> REPLACE", ""), "cut off"),
        ("\ud800" + "x" * 5000, "the answer has 5001 characters, answers may have 4096"),
        ("### FILE: op_kernel/toy.cpp\n```cpp\n" + "\U0001f600" * 4080 + "\n```", "answers may have 4096"),
    ],
)
def test_an_unusable_answer_is_a_turn_with_feedback_and_penalty(answer, words):
    evaluator = FakeEvaluator()
    session = _session(evaluator, budget=2, unusable_penalty=0.25, failure_penalty=0.5, max_source_chars=4096)
    session.reset()
    turn = session.step(answer)
    assert turn.reward == pytest.approx(-0.75)
    assert words in turn.message.content
    assert turn.info["unusable"]
    assert len(evaluator.requests) == 1  # the baseline
    assert not turn.done
    assert session.step(answer).terminated


def test_a_failed_candidate_is_told_with_its_diagnostics():
    session = _session(failure_penalty=0.5)
    session.reset()
    turn = session.step(_edit("    Ln(y, y, n);", "// status: timeout"))
    assert turn.reward == -0.5
    assert not turn.info["unusable"]
    assert "status: timeout" in turn.message.content
    assert "the toy ended as asked" in turn.message.content


def test_what_the_infrastructure_fails_is_asked_for_again_and_then_truncated():
    session = _session(FakeEvaluator(dict.fromkeys(range(1, 4), Status.INFRA_ERROR)), budget=5)
    session.reset()
    turns = [session.step(FASTER) for _ in range(3)]
    assert [turn.truncated for turn in turns] == [False, False, True]
    assert [turn.reward for turn in turns] == [0.0, 0.0, 0.0]
    assert "Answer again" in turns[0].message.content
    assert "next answer: 5." in turns[0].message.content


def test_the_episode_ends_with_its_budget():
    session = _session(budget=1)
    session.reset()
    turn = session.step(SLOWER)
    assert turn.terminated
    assert "the episode is over" in turn.message.content
    with pytest.raises(MisuseError, match="call reset"):
        session.step(SLOWER)
    session.reset()
    assert session.turns == 0
    assert session.step(SLOWER).done


def test_sources_are_told_once_if_so_wished():
    session = _session(repeat_sources=False)
    opening = session.reset()
    assert KERNEL in opening[1].content
    slower = session.step(SLOWER).message.content
    assert KERNEL not in slower
    assert "the same as before" in slower
    assert "// latency: 50" in session.step(FASTER).message.content


def test_the_seed_draws_the_operator():
    specs = [make_spec(name, kernel=KERNEL) for name in ("first", "second", "third")]

    def drawn(seed):
        session = _session(operator=specs)
        session.reset(seed=seed)
        names = [session.episode.spec.name]
        for _ in range(5):
            session.reset()
            names.append(session.episode.spec.name)
        return tuple(names)

    assert drawn(3) == drawn(3)
    assert len({drawn(seed) for seed in range(6)}) > 1


@pytest.mark.parametrize("penalty", [-1.0, float("nan"), float("inf")])
def test_impossible_penalties_are_refused(penalty):
    with pytest.raises(MisuseError, match="unusable_penalty"):
        _session(unusable_penalty=penalty)


def test_what_is_no_text_or_comes_before_reset_is_misuse():
    session = _session()
    with pytest.raises(MisuseError, match="call reset"):
        session.step(FASTER)
    session.reset()
    with pytest.raises(MisuseError, match="a str, got NoneType"):
        session.step(None)


_PARTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            *("### FILE: op_kernel/toy.cpp\n", "### FILE: op_host/toy.cpp\n", "```cpp\n", "```\n"),
            *("<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "    Ln(y, y, n);\n", "\ud800", "\0"),
        ]
    ),
)


@given(st.lists(_PARTS, max_size=12).map("".join))
def test_no_answer_raises(answer):
    session = _session(budget=1)
    session.reset()
    turn = session.step(answer)
    assert turn.terminated
    assert turn.info["unusable"] == (turn.info["status"] == "build_error")
    turn.message.content.encode()
