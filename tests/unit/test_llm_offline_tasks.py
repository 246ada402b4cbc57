"""The offline model's part in AscendOptimizer: what it reads in prompts, and what it makes of it."""

import re
from collections import Counter

import pytest
from conftest import make_candidate, make_spec, ok_result
from experiences import make_diff, make_experience
from rewritten import rule_named

from agents.ascend_optimizer.incumbent import Incumbent, Memory
from agents.ascend_optimizer.refine import (
    Diagnosis,
    describe_experience,
    diagnosis_messages,
    kernel_from_answer,
    read_diagnosis,
    refine_messages,
)
from agents.ascend_optimizer.retrieval import Retrieved
from agents.ascend_optimizer.tiling_search import MUTATIONS, mutation_messages, offspring_from_answer
from ascend_gym.core.protocols import Message, Proposal
from ascend_gym.core.records import Candidate, Diagnostic, MeasureProtocol, Phase, failed_result
from ascend_gym.core.status import Status
from ascend_gym.rewrites.evolve_blocks import END, START
from ascend_gym.rewrites.rule import edited
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.llm.offline.attempts import (
    Untried,
    attempts_in,
    changes_between,
    is_doomed,
    repeats,
)
from ascend_gym.search.llm.offline.axes import Axes, NumberedChoices
from ascend_gym.search.llm.offline.lessons import lessons_of
from ascend_gym.search.llm.offline.places import place_of
from ascend_gym.search.llm.offline.reading import evidence_of, experience_in
from ascend_gym.search.llm.offline.ub_estimate import UB_BYTES, UbRoom, fits_ub, ub_bytes
from ascend_gym.search.llm.prompts import render_sources
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for

TILING = f"""\
{START}
constexpr uint32_t TILE_LENGTH = 1024;
{END}
constexpr uint32_t BLOCK_DIM = 8;
"""
KERNEL = """\
constexpr int32_t BUFFER_NUM = 1;
void Compute(uint32_t n)
{
    Mul(d, d, a, n);
    PipeBarrier<PIPE_ALL>();
    Add(d, d, b, n);
    PipeBarrier<PIPE_V>();
}
"""
TILING_OF_CORES = f"""\
{START}
uint32_t Cores()
{{
    auto cores = ascendcPlatform.GetCoreNumAiv();
    return cores;
}}
{END}
"""
SPEC = make_spec(tiling=TILING, kernel=KERNEL)
REQUEST = request_for(SPEC, SPEC.baseline, MeasureProtocol())
INCUMBENT = Incumbent(SPEC.baseline, ok_result(REQUEST, 100.0))


def _answers(messages, count=30):
    model = OfflineModel()
    return [model.complete(messages, seed=seed, max_tokens=9999, deadline_s=1).text for seed in range(count)]


def _refined(retrieved=(), attempts="Nothing was attempted yet.", count=30):
    messages = refine_messages(
        SPEC, INCUMBENT, Diagnosis("waits", "", {}), retrieved, attempts, "1 of at most 1"
    )
    return [kernel_from_answer(answer, SPEC.baseline) for answer in _answers(messages, count)]


def _told(candidate, status=None, latency_us=None):
    """Return the section of prompts that tells of one attempt."""
    memory = Memory()
    result = ok_result(REQUEST, latency_us) if status is None else None
    result = result or failed_result(REQUEST, status, Diagnostic(phase=Phase.VERIFY, message="wrong"))
    memory.note(INCUMBENT, Proposal(candidate, {}), result)
    return memory.describe()


def _of_length(length):
    return SPEC.baseline.rewritten(tiling=TILING.replace("= 1024", f"= {length}"))


def test_refinements_change_the_kernel_alone():
    candidates = _refined()
    assert all(isinstance(candidate, Candidate) for candidate in candidates)
    assert all(candidate.host == SPEC.baseline.host for candidate in candidates)
    assert len({candidate.digest for candidate in candidates}) >= 5


def test_mutations_stay_inside_the_blocks():
    for mutation in MUTATIONS.values():
        messages = mutation_messages(
            SPEC, [INCUMBENT], mutation, "Nothing was attempted yet.", "1 of at most 1"
        )
        offspring = [offspring_from_answer(answer, SPEC.baseline) for answer in _answers(messages)]
        assert all(isinstance(each, Candidate) for each in offspring)
        assert len({each.digest for each in offspring}) >= 3
        assert all("BLOCK_DIM = 8" in each.tiling_text for each in offspring)


def _share(candidates, holds):
    return sum(holds(candidate) for candidate in candidates) / len(candidates)


def _without_vector_barrier(candidate):
    return "PIPE_V>" not in candidate.kernel_text


def test_experience_is_followed_and_more_so_the_more_it_gained():
    def share(slow_us):
        told = make_experience(motif="vector_barrier_removal", slow_us=slow_us, fast_us=10.0)
        return _share(_refined([Retrieved(told, 1.0)], count=150), _without_vector_barrier)

    none, little, much = _share(_refined(count=150), _without_vector_barrier), share(10.02), share(20.0)
    assert max(none, little) < much


def test_experience_speaks_against_what_it_says_to_avoid():
    def share(avoid_when):
        told = make_experience(motif="vector_barrier_removal", slow_us=20.0, avoid_when=(avoid_when,))
        return _share(_refined([Retrieved(told, 1.0)], count=150), _without_vector_barrier)

    assert share("synchronisation is by hand") < share("tensors are shared") * 0.6  # one of up to four rules


@pytest.mark.parametrize(("queue", "against"), [("TQue", False), ("TQueBind", False), ("TBuf", True)])
def test_experience_for_kernels_with_queues_is_advised_against_without_one(queue, against):
    told = make_experience(avoid_when=("tensors are shared between pipes without a queue",))
    (read,) = experience_in(f"{describe_experience(1, told)}\n{queue}<VECIN, 2> q;\n")
    assert read.is_advised_against is against


def test_what_was_attempted_is_not_repeated():
    again = Counter(candidate.kernel_text for candidate in _refined(count=40))
    most, _ = again.most_common(1)[0]
    attempted = SPEC.baseline.rewritten(kernel=most)
    for told in (_told(attempted, Status.INCORRECT), _told(attempted, latency_us=120.0)):
        assert most not in {candidate.kernel_text for candidate in _refined(attempts=told, count=40)}


def test_what_failed_is_not_tried_as_a_part_of_more_but_what_was_slow_can_be():
    alone = SPEC.baseline.rewritten(kernel=KERNEL.replace("    PipeBarrier<PIPE_ALL>();\n", ""))
    both = alone.rewritten(kernel=alone.kernel_text.replace("BUFFER_NUM = 1", "BUFFER_NUM = 2"))
    assert is_doomed(SPEC.baseline, both, attempts_in(_told(alone, Status.RUNTIME_FAULT)))
    assert not is_doomed(SPEC.baseline, both, attempts_in(_told(alone, latency_us=130.0)))
    assert not repeats(SPEC.baseline, both, attempts_in(_told(alone, Status.RUNTIME_FAULT)))


def test_the_call_that_a_diagnostic_names_is_to_blame_and_not_what_changed_beside_it():
    both = KERNEL.replace("NUM = 1", "NUM = 2").replace("    PipeBarrier<PIPE_V>();\n", "")
    beside = SPEC.baseline.rewritten(kernel=KERNEL.replace("NUM = 1", "NUM = 2"))
    blamed = SPEC.baseline.rewritten(kernel=KERNEL.replace("    PipeBarrier<PIPE_V>();\n", ""))
    told = _told(SPEC.baseline.rewritten(kernel=both), Status.RUNTIME_FAULT)
    said = "[run_kernel] op_kernel/toy.cpp:7: PipeBarrier: missing"
    attempts = attempts_in(told.replace("[verify] wrong", said))
    assert is_doomed(SPEC.baseline, blamed, attempts)
    assert not is_doomed(SPEC.baseline, beside, attempts)
    assert not is_doomed(SPEC.baseline, blamed, attempts_in(told))


def _told_of_a_fault(candidate, call, message):
    diagnostic = Diagnostic(phase=Phase.RUN_KERNEL, call=call, message=message)
    memory = Memory()
    result = failed_result(REQUEST, Status.RUNTIME_FAULT, diagnostic)
    memory.note(INCUMBENT, Proposal(candidate, {}), result)
    return memory.describe()


def test_after_a_race_what_kept_an_order_is_to_blame_and_not_the_call_that_is_named():
    after = KERNEL.replace("    PipeBarrier<PIPE_ALL>();\n", "").replace("Add(d, d, b, n)", "Add(d, b, d, n)")
    (attempt,) = attempts_in(
        _told_of_a_fault(SPEC.baseline.rewritten(kernel=after), "Add", "race on unified buffer bytes [0, 64)")
    )
    assert attempt.culprits == {"-PipeBarrier<PIPE_ALL>();"}


def test_less_of_what_failed_at_several_places_may_be_tried():
    barrier = "    PipeBarrier<PIPE_ALL>();\n"
    two = make_spec(tiling=TILING, kernel=KERNEL.replace("    Mul", f"{barrier}    Mul")).baseline
    none = two.rewritten(kernel=two.kernel_text.replace(barrier, ""))
    one = two.rewritten(kernel=two.kernel_text.replace(barrier, "", 1))
    memory = Memory()
    result = failed_result(
        REQUEST, Status.RUNTIME_FAULT, Diagnostic(phase=Phase.VERIFY, message="race on it")
    )
    memory.note(Incumbent(two, INCUMBENT.result), Proposal(none, {}), result)
    attempts = attempts_in(memory.describe())
    assert is_doomed(two, none, attempts)
    assert not is_doomed(two, one, attempts)


def test_where_no_call_is_named_what_valid_attempts_did_as_well_is_not_to_blame():
    both = KERNEL.replace("NUM = 1", "NUM = 2").replace("    PipeBarrier<PIPE_V>();\n", "")
    valid = SPEC.baseline.rewritten(kernel=KERNEL.replace("NUM = 1", "NUM = 2"))
    other = SPEC.baseline.rewritten(kernel=KERNEL.replace("    PipeBarrier<PIPE_V>();\n", ""))
    failed = _told(SPEC.baseline.rewritten(kernel=both), Status.RUNTIME_FAULT)
    attempts = attempts_in(f"{_told(valid, latency_us=130.0)}\n{failed}")
    assert is_doomed(SPEC.baseline, other, attempts)
    assert not is_doomed(SPEC.baseline, valid, attempts)


def test_what_attempts_with_the_same_complaint_have_in_common_is_to_blame():
    deeper, unbarred = KERNEL.replace("NUM = 1", "NUM = 3"), "    PipeBarrier<PIPE_V>();\n"
    one = _told(SPEC.baseline.rewritten(kernel=deeper.replace(unbarred, "")), Status.RUNTIME_FAULT)
    other = _told(SPEC.baseline.rewritten(kernel=f"// a comment\n{deeper}"), Status.RUNTIME_FAULT)
    said = "[run_kernel] op_kernel/toy.cpp:7: InitBuffer: unified buffer overflow: {} bytes asked for"
    told = [
        each.replace("[verify] wrong", said.format(size)) for each, size in ((one, 32256), (other, 32384))
    ]
    apart = SPEC.baseline.rewritten(kernel=KERNEL.replace(unbarred, ""))
    deeper_alone = SPEC.baseline.rewritten(kernel=deeper)
    assert is_doomed(SPEC.baseline, deeper_alone, attempts_in("\n".join(told)))
    assert not is_doomed(SPEC.baseline, apart, attempts_in("\n".join(told)))
    assert not is_doomed(SPEC.baseline, deeper_alone, attempts_in(told[0]))


def test_numbers_that_failed_alike_leave_the_others_of_their_line():
    fault = "[run_kernel] op_kernel/toy.cpp:7: InitBuffer: unified buffer overflow"
    said = f"- its reason: Rules: tile_size.\n- {fault}"
    told = [
        _told(_of_length(length), Status.RUNTIME_FAULT).replace("- [verify] wrong", said)
        for length in (8192, 16384)
    ]
    attempts = attempts_in("\n".join(told))
    assert [attempt.rules for attempt in attempts] == [("tile_size",), ("tile_size",)]
    assert all(is_doomed(SPEC.baseline, _of_length(length), attempts) for length in (8192, 16384))
    assert not is_doomed(SPEC.baseline, _of_length(2048), attempts)


def test_what_attempts_with_wrong_results_have_in_common_may_be_innocent():
    common, parts = (
        KERNEL.replace("NUM = 1", "NUM = 2"),
        ("    PipeBarrier<PIPE_V>();\n", "    Add(d, d, b, n);\n"),
    )
    told = [
        _told(SPEC.baseline.rewritten(kernel=common.replace(part, "")), Status.INCORRECT) for part in parts
    ]
    attempts = attempts_in("\n".join(told))
    assert [attempt.complaint for attempt in attempts] == ["", ""]
    assert not is_doomed(SPEC.baseline, SPEC.baseline.rewritten(kernel=common), attempts)


def test_an_overflow_of_an_attempt_says_nothing_of_the_incumbent():
    said = "- [run_kernel] op_kernel/toy.cpp:7: InitBuffer: unified buffer overflow: 99 bytes asked for"
    assert evidence_of(said).ub_is_short
    assert not evidence_of(f"as it is\n### Attempt 1, failed\n{said}").ub_is_short
    assert not evidence_of("- [run_kernel] InitBuffer: a buffer of 9 bytes does not fit").ub_is_short


def test_what_lost_much_is_not_tried_again_where_there_is_nothing_else():
    spec = make_spec(tiling=TILING_OF_CORES, kernel=KERNEL)
    incumbent = Incumbent(spec.baseline, ok_result(REQUEST, 100.0))
    slower = spec.baseline.rewritten(tiling=TILING_OF_CORES.replace("NumAiv()", "NumAiv() / 2"))
    memory = Memory()
    answer = "Rules: core_share."
    memory.note(incumbent, Proposal(slower, {}), ok_result(REQUEST, 200.0), "tiling", answer)
    for attempts, some in (("Nothing was attempted yet.", True), (memory.describe(), False)):
        messages = mutation_messages(spec, [incumbent], "logic", attempts, "1 of at most 1")
        found = [offspring_from_answer(each, spec.baseline) for each in _answers(messages, 10)]
        assert any(isinstance(each, Candidate) for each in found) is some


def test_what_helped_is_not_taken_back():
    faster = SPEC.baseline.rewritten(kernel=KERNEL.replace("NUM = 1", "NUM = 2"))
    assert repeats(faster, SPEC.baseline, attempts_in(_told(faster, latency_us=90.0)))


def test_numbers_go_on_where_that_helped_and_not_again_where_it_did_not():
    def weight(present, wanted, latency_us):
        told = _told(_of_length(2048), latency_us=latency_us)
        changes = changes_between(_of_length(present), _of_length(wanted))
        return Axes(attempts_in(told)).weight(place_of(changes))

    assert weight(2048, 4096, 90.0) > 1.0
    assert weight(2048, 1024, 90.0) == weight(1024, 2048, 110.0) < 0.05  # known
    assert weight(1024, 4096, 110.0) < weight(1024, 4096, 100.0) < 1.0 < weight(1024, 512, 110.0)
    assert weight(1024, 1536, 100.0) < weight(1024, 1536, 110.0)


def test_gains_along_an_axis_are_compared_and_beyond_what_failed_nothing_is_tried():
    attempts = (
        _told(_of_length(4096), latency_us=90.0),
        _told(_of_length(512), latency_us=99.0),
        _told(_of_length(8192), Status.RUNTIME_FAULT),
    )
    axes = Axes(attempts_in("\n".join(attempts)))

    def weight(present, wanted):
        return axes.weight(place_of(changes_between(_of_length(present), _of_length(wanted))))

    assert weight(512, 4096) > 1.0 > weight(4096, 512)
    assert weight(4096, 16384) < 0.1 < weight(4096, 6144)
    assert axes.weight(place_of(frozenset({"+other = 7;"}))) is None


def test_steps_are_halved_between_the_present_number_and_the_next_that_lost():
    choices = NumberedChoices(Axes(attempts_in(_told(_of_length(2048), latency_us=110.0))), SPEC.baseline)
    (site,) = rule_named("tile_size").sites(SPEC.baseline)
    finer = [choice for choice in choices.with_finer(site).choices if choice not in site.choices]
    assert [choice.label for choice in finer] == ["TILE_LENGTH: 1024 -> 1536"]
    (rewritten,) = [edited(SPEC.baseline, choice.edits) for choice in finer]
    assert "TILE_LENGTH = 1536" in rewritten.tiling_text
    assert choices.with_finer(site).choices[: len(site.choices)] == site.choices


@pytest.mark.parametrize("task", ["refine", "mutate-tiling", "diagnose", "template"])
def test_a_prompt_without_an_operator_gets_words(task):
    (answer,) = _answers([Message("user", f"# Task: {task}\nHello.\n")], 1)
    assert isinstance(answer, str)
    assert "### FILE" not in answer


def test_when_nothing_is_left_it_says_so():
    spec = make_spec(tiling=f"{START}\nint a;\n{END}\n", kernel="int b;\n")
    incumbent = Incumbent(spec.baseline, INCUMBENT.result)
    messages = mutation_messages(spec, [incumbent], MUTATIONS["logic"], "", "1 of at most 1")
    assert "not attempted" in _answers(messages, 1)[0]
    messages = refine_messages(spec, incumbent, Diagnosis("", "", {}), [], "", "1 of at most 1")
    assert "not attempted" in _answers(messages, 1)[0]


def test_the_diagnosis_speaks_of_profile_and_code():
    (answer,) = _answers(diagnosis_messages(SPEC, INCUMBENT, ""), 1)
    bottleneck, _ = read_diagnosis(answer)
    assert "even the busiest idles 50 %" in bottleneck
    assert "PipeBarrier PIPE_ALL" in bottleneck
    assert "single buffer" in bottleneck
    assert "GetValue" not in bottleneck


# What the shipped kernels of the core suite ask for, added up by hand from their InitBuffer calls.
@pytest.mark.parametrize(
    ("name", "element_bytes", "expected"),
    [("add", 2, 3 * 2048 * 2), ("gelu", 4, 3 * 1024 * 4), ("gelu", 2, 1024 * (2 * 2 + 3 * 4))],
)
def test_ub_is_added_up_for_an_element_size(name, element_bytes, expected):
    assert ub_bytes(load_operator(name).baseline, element_bytes) == expected


def _queue_kernel(init):
    return make_candidate(
        "constexpr uint32_t TILE = 8 * 1024;\nvoid T() { tiling.set_tileLength(TILE); }\n",
        f"constexpr int N = 2;\nclass K {{ void Init() {{ {init} }} }};\n",
    )


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("pipe.InitBuffer(q, N, this->tileLength * sizeof(float));", 2 * 8192 * 4),
        ("pipe.InitBuffer(q, N, (tileLength + 64) / 32 * 32);", 2 * 8256),
        ("pipe.InitBuffer(b, unknown * 4); pipe.InitBuffer(q, 1, 0x100);", 256),
        ("pipe.InitBuffer(q, N, 7 / 0);", 0),
        ("", 0),
    ],
)
def test_ub_is_added_up_as_far_as_it_is_known(init, expected):
    assert ub_bytes(_queue_kernel(init), 4) == expected


def _asking(init, constant="constexpr int N = 2;", host="void T() {}\n"):
    return make_candidate(host, f"{constant}\nclass K {{ void Init() {{ {init} }} }};\n")


_QUEUES = "pipe.InitBuffer(in, N, tile * sizeof(T)); pipe.InitBuffer(out, N, tile * sizeof(T)); "
_BUFFER = "pipe.InitBuffer(b, tile * sizeof(float));"


@pytest.mark.parametrize(
    ("init", "constant", "taken_share", "fits"),
    [
        # Four halves and one float of a tile: a third buffer of each queue takes as much as it.
        (_QUEUES + _BUFFER, "constexpr int N = 3;", 0.70, True),
        (_QUEUES + _BUFFER, "constexpr int N = 3;", 0.76, False),
        (_QUEUES + _BUFFER, "constexpr int N = 1;", 1.0, True),
        (_QUEUES + _BUFFER.replace("float)", "float) + 256"), "constexpr int N = 2;", 0.99, True),
        (_QUEUES + _BUFFER.replace("float)", "float) + 256"), "constexpr int N = 2;", 1.0, False),
        # What is new and unknown may be small, and so may what grew among several unknown values.
        (_QUEUES + _BUFFER + "pipe.InitBuffer(c, rows);", "constexpr int N = 2;", 1.0, True),
    ],
)
def test_what_the_buffers_take_bounds_what_more_of_them_take(init, constant, taken_share, fits):
    before = _asking(_QUEUES + _BUFFER)
    room = UbRoom((2,), int(UB_BYTES * taken_share))
    assert fits_ub(_asking(init, constant), before, room) == fits


def test_what_the_kernel_defines_is_not_what_the_tiling_program_calls_the_same():
    host = "constexpr int N = 2;\nvoid T() {}\n"
    before = _asking(_QUEUES + _BUFFER, "constexpr int N = 2;", host)
    assert not fits_ub(
        _asking(_QUEUES + _BUFFER, "constexpr int N = 3;", host), before, UbRoom((2,), UB_BYTES)
    )


def test_growth_is_bounded_only_where_it_is_certain():
    before = _asking(_QUEUES + "pipe.InitBuffer(b, rows * 32);")
    after = _asking(_QUEUES + "pipe.InitBuffer(b, rows * 32);", "constexpr int N = 3;")
    full = UbRoom((2,), UB_BYTES)
    assert fits_ub(after, before, full)  # the tile may be small beside the rows
    tiled = _asking(_QUEUES + _BUFFER, "constexpr int N = 3;", host="void T() { int parts = 3; }\n")
    assert fits_ub(tiled, _asking(_QUEUES + _BUFFER), full)  # another tiling program, other tiles
    assert fits_ub(
        _asking(_QUEUES + _BUFFER, "constexpr int N = 3;"), _asking(_QUEUES + _BUFFER), UbRoom((2,))
    )


def test_room_in_ub_and_bank_conflicts_are_read_from_measurements():
    first = (
        "buffers take 1000 of 196608 bytes of UB\n bank conflicts in UB, by instruction: none that count\n"
    )
    second = "buffers take 5000 bytes of UB\n bank conflicts in UB, by instruction: Add=0.125, Mul=0.250\n"
    assert evidence_of(first).ub_room.taken_bytes == 1000
    assert evidence_of(first).bank_conflicts == 0.0
    both = evidence_of(first + second)
    assert (both.ub_room.taken_bytes, both.bank_conflicts) == (5000, 0.375)
    untold = evidence_of("status: ok\n")
    assert untold.ub_room.taken_bytes is None
    assert untold.bank_conflicts is None


def test_padding_against_bank_conflicts_waits_where_there_are_none():
    rule = rule_named("bank_padding")
    sites = rule.sites(load_operator("gelu").baseline)
    weights = [
        evidence_of(f"bank conflicts in UB, by instruction: {told}\n").rule_weight(rule, sites)
        for told in ("none that count", "Add=0.010", "Add=0.300")
    ]
    assert weights[0] < evidence_of("").rule_weight(rule, sites) < weights[1] < weights[2]


def test_candidates_that_overflow_ub_are_not_proposed():
    spec = load_operator("softmax")
    room = UbRoom((2, 4))
    assert fits_ub(spec.baseline, spec.baseline, room)
    longer = spec.baseline.rewritten(tiling=spec.baseline.tiling_text.replace("= 4096", "= 65536"))
    assert ub_bytes(longer, 4) > UB_BYTES
    assert not fits_ub(longer, spec.baseline, room)
    assert fits_ub(longer, longer, room)
    prompt = f"# Task: rewrite\n- c: (x float32 8x8)\n{render_sources(spec.baseline)}"
    tiles = set()
    for answer in _answers([Message("user", prompt)], 40):
        tiles |= set(re.findall(r"TILE_LENGTH = (\d+)", answer))
    assert "8192" in tiles
    assert "32768" not in tiles


def test_experiences_of_a_prompt_are_told_apart():
    told = [
        Retrieved(make_experience(motif=motif, code_diff=make_diff(f"    {motif}();")), 0.0)
        for motif in ("buffer_count", "axpy")
    ]
    candidates = _refined(told, count=60)
    assert _share(candidates, lambda each: "NUM = 2" in each.kernel_text) > _share(
        _refined(count=60), lambda each: "NUM = 2" in each.kernel_text
    )


def test_rules_that_gained_nothing_are_tried_less_until_they_gain():
    longer = SPEC.baseline.rewritten(kernel=KERNEL.replace("    PipeBarrier<PIPE_V>();\n", ""))

    def told(latency_us, rules):
        memory = Memory()
        result, answer = ok_result(REQUEST, latency_us), f"Rules: {rules}.\n- because\n\n### FILE: x\n"
        memory.note(INCUMBENT, Proposal(longer, {}), result, "kernel", answer)
        return memory.describe()

    vain, shared, gained = told(101.0, "axpy"), told(101.0, "axpy, rsqrt"), told(90.0, "axpy")
    worse = told(130.0, "axpy")
    assert "- its reason: Rules: axpy. - because\n" in vain
    assert lessons_of(attempts_in(vain)).weight("axpy") < lessons_of(attempts_in(shared)).weight("axpy") < 1.0
    assert lessons_of(attempts_in(vain)).weight("rsqrt") == 1.0
    assert lessons_of(attempts_in(worse)).weight("axpy") < lessons_of(attempts_in(vain)).weight("axpy") / 5
    assert lessons_of(attempts_in(f"{vain}\n{gained}")).weight("axpy") > 1.0
    assert lessons_of(attempts_in(worse)).weight("axpy", has_numbers=True) > 0.5


def test_rules_that_changed_nothing_together_are_each_in_vain_and_more_so_everywhere():
    head = "### Attempt 1, not faster: 20.00 -> 20.00 us (kernel)\n"
    steps = "- early_release at f:1 x: y - l2_bypass at all 3 tensors: z"
    told = f"{head}- its reason: Rules: early_release, l2_bypass. {steps}\n~~~~diff\n-a();\n+b();\n~~~~\n"
    nothing = lessons_of(attempts_in(told))
    slower = lessons_of(attempts_in(told.replace("-> 20.00", "-> 20.10")))
    assert nothing.in_vain == {"early_release": 1.0, "l2_bypass": 3.0}
    assert slower.in_vain == {"early_release": 0.5, "l2_bypass": 0.5}


@pytest.mark.parametrize(("outcome", "in_vain"), [("not faster: 20.00 -> 20.10 us", 3.0), ("failed", 2.0)])
def test_a_rule_that_loses_at_all_places_is_in_vain_at_each_but_one_that_fails_may_do_at_some(
    outcome, in_vain
):
    reason = "- its reason: Rules: aligned_copy. - aligned_copy at all 3 copies: plain"
    told = f"### Attempt 1, {outcome} (kernel)\n{reason}\n~~~~diff\n-a();\n+b();\n~~~~\n"
    assert lessons_of(attempts_in(told)).in_vain == {"aligned_copy": in_vain}


def test_rules_of_a_first_version_gained():
    vain = (
        "### Attempt 1, not faster: 20.00 -> 20.10 us\n"
        "- its reason: Rules: axpy.\n~~~~diff\n-a();\n+b();\n~~~~\n"
    )
    first = vain.replace("1, not faster: 20.00 -> 20.10", "2, kept: the first version, 20.00")
    (attempt,) = attempts_in(first)
    assert attempt.gain is None
    assert not attempt.without_effect
    assert lessons_of(attempts_in(f"{vain}{first}")).weight("axpy") > 1.0


@pytest.mark.parametrize(
    ("synchronisation", "queue", "kept"),
    [("on", "TQue<VECIN, 2> q;", 1.0), ("off", "TQue<VECIN, 2> q;", 0.15), ("on", "", 0.15)],
)
def test_orders_are_kept_where_nothing_else_keeps_them(synchronisation, queue, kept):
    rule = rule_named("vector_barrier_removal")
    sites = rule.sites(SPEC.baseline)

    def weight(text):
        return evidence_of(text).rule_weight(rule, sites)

    told = weight(f"compiled with automatic synchronisation {synchronisation}\n{queue}")
    assert told == pytest.approx(kept * weight("TQue<VECIN, 2> q;"))


def test_other_numbers_for_what_had_no_effect_come_last():
    nothing = Untried(SPEC.baseline, attempts_in(_told(_of_length(2048), latency_us=100.0)), UbRoom((4,)))
    slower = Untried(SPEC.baseline, attempts_in(_told(_of_length(2048), latency_us=101.0)), UbRoom((4,)))
    other = SPEC.baseline.rewritten(kernel=KERNEL.replace("BUFFER_NUM = 1", "BUFFER_NUM = 2"))
    longer = _of_length(4096)
    assert nothing.accepts(longer)
    assert [nothing.promises(longer), slower.promises(longer)] == [False, True]
    assert nothing.promises(other)


def test_fewer_blocks_are_tried_where_launching_takes_the_time_and_more_where_cores_are_idle():
    def weight(rule, *cases):
        lines = "".join(
            f"- case: block dim {blocks} of 48 vector cores; an empty launch of {blocks} blocks takes 4 us, "
            f"{share}% of it\n"
            for blocks, share in cases
        )
        return evidence_of(lines).rule_weight(rule_named(rule), [])

    assert weight("core_share", (48, 60), (48, 50)) > weight("core_share", (48, 60), (48, 5))
    assert weight("core_work", (48, 60), (48, 5)) > weight("core_work", (48, 10), (48, 5))
    assert weight("block_dim", (48, 10), (24, 5)) > weight("block_dim", (48, 10), (48, 5))
