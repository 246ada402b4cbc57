"""Rewrites of several moves that attempts with one of them speak for."""

import pytest
from conftest import make_spec, ok_result
from rewritten import rule_named

from agents.ascend_optimizer.incumbent import Incumbent, Memory
from agents.ascend_optimizer.refine import Diagnosis, refine_messages
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Side
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.llm.offline.attempts import Untried, attempts_in
from ascend_gym.search.llm.offline.axes import Axes, without_doubtful
from ascend_gym.search.llm.offline.combining import at_all_places, balanced, combined, exchanged
from ascend_gym.search.llm.offline.lessons import lessons_of
from ascend_gym.search.llm.offline.picking import told
from ascend_gym.search.llm.offline.places import place_of
from ascend_gym.search.llm.offline.ub_estimate import UbRoom
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for

HOST_RULES = tuple(rule for rule in RULES if rule.side is Side.TILING)
KERNEL_RULES = tuple(rule for rule in RULES if rule.side is not Side.TILING)
TILING = """\
constexpr uint32_t ALIGN_BYTES = 32;
constexpr uint32_t TILE_LENGTH = 1024;
"""
SPEC = make_spec(tiling=TILING, kernel="int kernel = 0;\n")
GELU = load_operator("gelu")


class Run:
    """Attempts one after the other, each from the fastest version so far."""

    def __init__(self, spec):
        self.spec, self.memory = spec, Memory()
        self.request = request_for(spec, spec.baseline, MeasureProtocol())
        self.best = Incumbent(spec.baseline, ok_result(self.request, 100.0))

    def attempt(self, rules, latency_us, *, old, new, count=1):
        """Replace a text ``count`` times in host and kernel, and note the latency."""
        before = self.best.candidate
        candidate = before.rewritten(
            tiling=before.tiling_text.replace(old, new, count),
            kernel=before.kernel_text.replace(old, new, count),
        )
        assert candidate != before
        result = ok_result(self.request, latency_us)
        self.memory.note(self.best, Proposal(candidate, {}), result, "stage", f"Rules: {rules}.\n")
        if latency_us < self.best.latency_us:
            self.best = Incumbent(candidate, result)

    @property
    def attempts(self):
        return attempts_in(self.memory.describe())

    def combined(self):
        """Return what is combined in the kernel of the fastest version."""
        attempts = self.attempts
        untried = Untried(self.best.candidate, attempts, UbRoom((4,)))
        return combined(self.best.candidate, KERNEL_RULES, untried, lessons_of(attempts))

    def balanced(self):
        """Return the texts of the tilings that change two numbers against each other."""
        before = self.best.candidate
        found = balanced(before, HOST_RULES, Untried(before, self.attempts, UbRoom((4,))))
        return [steps[1].applied_to(steps[0].applied_to(before)).tiling_text for steps in found]

    def exchanged(self):
        """Return the texts of the tilings that exchange one number for another."""
        before = self.best.candidate
        untried = Untried(before, self.attempts, UbRoom((4,)))
        found = exchanged(before, HOST_RULES, untried)
        return [steps[1].applied_to(steps[0].applied_to(before)).tiling_text for steps in found]


def test_what_had_no_effect_is_tried_with_the_rule_that_it_opens_once():
    run = Run(GELU)
    assert run.combined()[1] == []
    run.attempt("buffer_count", 100.0, old="BUFFER_NUM = 1", new="BUFFER_NUM = 2")
    after, steps = run.combined()
    assert [step.rule.name for step in steps] == ["buffer_count", "prefetch"]
    assert "BUFFER_NUM = 2" in after.kernel_text
    assert "offset + this->tileLength" in after.kernel_text
    result = ok_result(run.request, 101.0)
    run.memory.note(run.best, Proposal(after, {}), result, "stage", "Rules: buffer_count, prefetch.\n")
    assert run.combined()[1] == []


def test_what_lost_opens_nothing():
    run = Run(GELU)
    run.attempt("buffer_count", 101.0, old="BUFFER_NUM = 1", new="BUFFER_NUM = 2")
    assert run.combined()[1] == []


@pytest.mark.parametrize(("latency_us", "left"), [(95.0, 0), (99.9, 6), (105.0, 7)])
def test_a_rule_that_gained_at_one_place_follows_at_all_others_together(latency_us, left):
    run = Run(GELU)
    run.attempt("vector_barrier_removal", latency_us, old="        AscendC::PipeBarrier<PIPE_V>();\n", new="")
    after, _ = run.combined()
    assert after.kernel_text.count("PipeBarrier<PIPE_V>") == left


def test_all_places_are_one_move_that_is_told_as_such():
    rule = rule_named("late_acquire")
    before = load_operator("foreach_add").baseline
    sites = rule.sites(before)
    move = at_all_places(before, rule, sites)
    assert len(sites) > 1
    assert move.site.label == f"all {len(sites)} places"
    after = move.applied_to(before)
    assert rule.sites(after) == []
    assert f"- late_acquire at all {len(sites)} places: " in told(before, after, [move])
    assert at_all_places(before, rule, sites[:1]) is None
    assert at_all_places(before, rule_named("buffer_count"), rule_named("buffer_count").sites(before)) is None


def test_a_rule_that_was_never_tried_is_tried_at_all_of_its_places():
    spec = load_operator("foreach_add")
    run = Run(spec)
    messages = refine_messages(
        spec, run.best, Diagnosis("waits", "", {}), (), run.memory.describe(), "1 of at most 1"
    )
    model = OfflineModel()
    answers = [model.complete(messages, seed=seed, max_tokens=9999, deadline_s=1).text for seed in range(40)]
    named = [answer for answer in answers if answer.startswith("Rules: late_acquire.")]
    assert named
    assert all("- late_acquire at all 3 places: " in answer for answer in named)


def _tiles_beside_an_alignment(gain_us):
    """Attempts: an alignment that gains, beside which three tile lengths lose."""
    run = Run(SPEC)
    run.attempt("split_alignment", 100.0 - gain_us, old="BYTES = 32", new="BYTES = 512")
    for length, latency_us in ((8192, 120.0), (2048, 105.0), (4096, 110.0)):
        run.attempt("tile_size", latency_us, old="LENGTH = 1024", new=f"LENGTH = {length}")
    return run


def test_a_small_gain_is_given_up_once_for_the_number_that_lost_least_beside_it():
    run = _tiles_beside_an_alignment(gain_us=2.0)
    (tiling,) = run.exchanged()
    assert tiling == TILING.replace("1024", "2048")
    run.attempt("split_alignment, tile_size", 101.0, old=run.best.candidate.tiling_text, new=tiling)
    assert run.exchanged() == []


def test_a_small_gain_is_not_given_up_for_what_lost_far_more():
    run = Run(SPEC)
    run.attempt("split_alignment", 98.0, old="BYTES = 32", new="BYTES = 512")
    for length, latency_us in ((8192, 250.0), (2048, 150.0), (4096, 200.0)):
        run.attempt("tile_size", latency_us, old="LENGTH = 1024", new=f"LENGTH = {length}")
    assert run.exchanged() == []


def test_several_steps_along_an_axis_are_given_up_together():
    run = _tiles_beside_an_alignment(gain_us=1.0)
    run.attempt("split_alignment", 98.0, old="BYTES = 512", new="BYTES = 256")
    assert run.exchanged() == [TILING.replace("1024", "2048")]


def test_a_large_gain_is_not_given_up_nor_a_small_one_for_what_was_tried_once():
    assert _tiles_beside_an_alignment(gain_us=20.0).exchanged() == []
    run = Run(SPEC)
    run.attempt("split_alignment", 98.0, old="BYTES = 32", new="BYTES = 512")
    run.attempt("tile_size", 105.0, old="LENGTH = 1024", new="LENGTH = 2048")
    assert run.exchanged() == []


def test_between_no_effect_and_a_loss_lies_a_threshold():
    run = Run(SPEC)
    run.attempt("tile_size", 100.0, old="LENGTH = 1024", new="LENGTH = 2048")

    def weight(wanted):
        changes = frozenset(
            {"-constexpr uint32_t TILE_LENGTH = 1024;", f"+constexpr uint32_t TILE_LENGTH = {wanted};"}
        )
        return Axes(run.attempts).weight(place_of(changes))

    before = weight(4096)
    run.attempt("tile_size", 120.0, old="LENGTH = 1024", new="LENGTH = 8192")
    assert weight(4096) > before > weight(16384)


def test_between_the_present_number_and_one_that_lost_there_is_more_hope_than_beyond_one_without_effect():
    lost, in_vain = Run(SPEC), Run(SPEC)
    lost.attempt("tile_size", 120.0, old="LENGTH = 1024", new="LENGTH = 8192")
    in_vain.attempt("tile_size", 100.0, old="LENGTH = 1024", new="LENGTH = 2048")
    changes = frozenset(
        {"-constexpr uint32_t TILE_LENGTH = 1024;", "+constexpr uint32_t TILE_LENGTH = 4096;"}
    )
    assert Axes(lost.attempts).weight(place_of(changes)) > 1.0
    assert Axes(in_vain.attempts).weight(place_of(changes)) < 1.0


def test_beyond_a_number_of_the_kernel_without_effect_there_is_none():
    run = Run(make_spec(tiling=TILING, kernel="constexpr int32_t BUFFER_NUM = 1;\n"))
    run.attempt("buffer_count", 100.0, old="BUFFER_NUM = 1", new="BUFFER_NUM = 2")
    changes = frozenset({"-constexpr int32_t BUFFER_NUM = 1;", "+constexpr int32_t BUFFER_NUM = 3;"})
    assert Axes(run.attempts).weight(place_of(changes)) < 0.05


def _length(now, wanted):
    """Return the changes that make one tile length of another."""
    return frozenset(
        {f"-constexpr uint32_t TILE_LENGTH = {now};", f"+constexpr uint32_t TILE_LENGTH = {wanted};"}
    )


def test_what_had_no_effect_is_in_doubt_once_another_number_of_the_host_is_another():
    run = Run(SPEC)
    run.attempt("tile_size", 100.0, old="LENGTH = 1024", new="LENGTH = 4096")
    shorter, same, longer = (place_of(_length(1024, wanted)) for wanted in (2048, 4096, 8192))
    assert Axes(run.attempts).weight(shorter) < 0.1
    assert Axes(run.attempts).weight(same) < 0.1
    run.attempt("split_alignment", 90.0, old="BYTES = 32", new="BYTES = 512")
    assert Axes(run.attempts).weight(shorter) < 0.1  # what had no effect at more has none at less
    assert Axes(run.attempts).weight(same) is None
    assert Axes(run.attempts).weight(longer) is None


def test_a_doubt_ends_when_the_number_is_tried_again():
    run = Run(SPEC)
    run.attempt("tile_size", 100.0, old="LENGTH = 1024", new="LENGTH = 4096")
    run.attempt("split_alignment", 90.0, old="BYTES = 32", new="BYTES = 512")
    run.attempt("tile_size", 99.0, old="LENGTH = 1024", new="LENGTH = 4096")
    assert Axes(run.attempts).weight(place_of(_length(1024, 2048))) > 1.0


def test_an_axis_that_never_had_an_effect_is_in_doubt_once():
    run = Run(SPEC)
    run.attempt("tile_size", 100.0, old="LENGTH = 1024", new="LENGTH = 4096")
    run.attempt("split_alignment", 90.0, old="BYTES = 32", new="BYTES = 512")
    run.attempt("tile_size", 90.0, old="LENGTH = 1024", new="LENGTH = 4096")
    run.attempt("split_alignment", 80.0, old="BYTES = 512", new="BYTES = 256")
    assert without_doubtful(run.attempts) == run.attempts[1:]
    assert Axes(run.attempts).weight(place_of(_length(1024, 4096))) < 0.1


def test_padding_is_in_doubt_once_tiles_have_another_length():
    run = Run(make_spec(tiling=TILING, kernel="pipe.InitBuffer(a, 64);\n"))
    run.attempt("bank_padding", 101.0, old="64)", new="64 + 256)")
    assert without_doubtful(run.attempts) == run.attempts
    run.attempt("tile_size", 90.0, old="LENGTH = 1024", new="LENGTH = 4096")
    assert without_doubtful(run.attempts) == run.attempts[1:]


def test_part_of_ub_is_in_doubt_once_the_kernel_gained():
    size = "platform.GetCoreMemSize(CoreMemType::UB, size);"
    run = Run(make_spec(tiling=f"void f() {{\n    {size}\n}}\n", kernel="PipeBarrier<PIPE_ALL>();\nEnd();\n"))
    run.attempt("ub_share", 101.0, old=size, new=f"{size}\n    size = size * 2 / 4 / 512 * 512;")
    assert without_doubtful(run.attempts) == run.attempts
    run.attempt("full_barrier_removal", 90.0, old="PipeBarrier<PIPE_ALL>();\n", new="")
    assert without_doubtful(run.attempts) == run.attempts[1:]


def test_a_number_that_is_in_doubt_may_be_tried_again():
    run = Run(SPEC)
    run.attempt("tile_size", 100.0, old="LENGTH = 1024", new="LENGTH = 4096")
    assert without_doubtful(run.attempts) == run.attempts
    run.attempt("split_alignment", 90.0, old="BYTES = 32", new="BYTES = 512")
    assert without_doubtful(run.attempts) == run.attempts[1:]
    run.attempt("tile_size", 90.0, old="LENGTH = 1024", new="LENGTH = 4096")
    assert without_doubtful(run.attempts) == run.attempts[1:]


def test_what_lost_is_not_in_doubt():
    run = Run(SPEC)
    run.attempt("tile_size", 110.0, old="LENGTH = 1024", new="LENGTH = 2048")
    changes = frozenset(
        {"-constexpr uint32_t TILE_LENGTH = 1024;", "+constexpr uint32_t TILE_LENGTH = 4096;"}
    )
    before = Axes(run.attempts).weight(place_of(changes))
    run.attempt("split_alignment", 90.0, old="BYTES = 32", new="BYTES = 512")
    assert Axes(run.attempts).weight(place_of(changes)) == before < 0.1


def test_a_number_that_lost_is_tried_once_with_the_other_divided_by_its_factor():
    run = Run(SPEC)
    run.attempt("tile_size", 90.0, old="LENGTH = 1024", new="LENGTH = 4096")
    assert run.balanced() == []
    run.attempt("split_alignment", 95.0, old="BYTES = 32", new="BYTES = 64")
    run.attempt("split_alignment", 99.0, old="BYTES = 32", new="BYTES = 128")
    farthest, nearest = run.balanced()
    assert farthest == TILING.replace("BYTES = 32", "BYTES = 128")
    assert nearest == TILING.replace("BYTES = 32", "BYTES = 64").replace("1024", "2048")
    run.attempt("split_alignment, tile_size", 91.0, old=run.best.candidate.tiling_text, new=farthest)
    assert run.balanced() == []


def test_what_lost_before_the_other_gained_is_not_balanced():
    run = Run(SPEC)
    run.attempt("split_alignment", 105.0, old="BYTES = 32", new="BYTES = 128")
    run.attempt("tile_size", 90.0, old="LENGTH = 1024", new="LENGTH = 4096")
    assert run.balanced() == []
