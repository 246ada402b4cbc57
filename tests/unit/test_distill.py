"""Distillation: what is measured, what is told, and answers of any kind."""

import json

import pytest
from conftest import make_profile, make_spec, ok_result

from agents.ascend_optimizer.distill import (
    distil,
    distill_messages,
    fields_of_answer,
    telling_case,
    telling_changes,
)
from agents.ascend_optimizer.experience import Experience, ProfileChange
from agents.ascend_optimizer.rewind import Implementation, RewindStep, Unreadable
from ascend_gym.core.protocols import Completion
from ascend_gym.core.records import CaseResult, EvalResult, MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Family
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.llm.offline.distill import mechanism_of, mechanisms
from ascend_gym.search.model_client import ModelClient
from ascend_gym.suite.requests import request_for

FAST_KERNEL, SLOW_KERNEL = "int k;\nMul(d, a, b, n);\n", "int k;\nMul(d, a, b, n / 2);\n"
SPEC = make_spec(kernel=FAST_KERNEL)
TOLD = {
    "title": "Longer",
    "bottleneck": "Short instructions",
    "keywords": ["a", "b"],
    "family": "kernel.compute.x",
}


def _implementation(kernel, latencies_us, **profile):
    candidate = SPEC.baseline.rewritten(kernel=kernel)
    cases = tuple(
        CaseResult(
            case_id=name,
            status=Status.OK,
            samples_us=(us,),
            profile=make_profile(us).model_copy(update=profile),
        )
        for name, us in latencies_us.items()
    )
    plain = ok_result(request_for(SPEC, candidate, MeasureProtocol()), 1.0)
    return Implementation.measured(
        candidate,
        EvalResult.model_validate({**plain.model_dump(), "cases": [case.model_dump() for case in cases]}),
    )


def step(motif="whole_call", slow=None, fast=None, slow_us=20.0):
    """Return a pair whose case ``large`` gets slower, and in which chosen figures of the profile differ."""
    return RewindStep(
        0,
        0,
        motif,
        "op_kernel/toy.cpp Mul",
        fast=_implementation(FAST_KERNEL, {"small": 1.0, "large": 10.0}, **(fast or {})),
        slow=_implementation(SLOW_KERNEL, {"small": 1.0, "large": slow_us}, **(slow or {})),
    )


class Model:
    def __init__(self, text):
        self.text = text

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        return Completion(self.text, 10, 5, "scripted")


def _distilled(llm, pair):
    return distil(SPEC, pair, ModelClient(llm, seed=3), chip="910B2", seed=3)


def test_what_was_measured_does_not_come_from_the_model():
    lies = {**TOLD, "slow_us": 1e9, "motif": "another", "code_diff": "none", "profile_evidence": []}
    experience = _distilled(Model(json.dumps(lies)), step())
    assert (experience.operator, experience.motif) == ("core/toy", "whole_call")
    assert experience.slow_us == pytest.approx(20.0**0.5)
    assert experience.fast_us == pytest.approx(10.0**0.5)
    assert "-Mul(d, a, b, n / 2);\n+Mul(d, a, b, n);\n" in experience.code_diff
    assert {change.metric for change in experience.profile_evidence} >= {"aiv_time", "task_duration_us"}
    provenance = experience.provenance
    assert (provenance.model, provenance.chip, provenance.seed) == ("scripted", "910B2", 3)
    assert provenance.slow_digest != provenance.fast_digest == SPEC.baseline.digest


def test_the_case_with_the_largest_effect_is_the_one_that_is_told_of():
    slow, fast = telling_case(step())
    assert (slow.case_id, fast.case_id) == ("large", "large")
    prompt = distill_messages(SPEC, step(), "910B2")[1].content
    assert "Profile of case large" in prompt
    assert "- task_duration_us: 20 -> 10" in prompt
    assert "small: (x float16 8x128) -> (x float16 8x128): 1.000 us -> 1.000 us" in prompt


def test_telling_changes_are_the_large_ones_in_order():
    pairs = {"a": (100, 100.5), "b": (1, 4), "c": (10, 5), "d": (0, 3), "e": (0, 0)}
    changes = [
        ProfileChange(metric=name, before=before, after=after) for name, (before, after) in pairs.items()
    ]
    assert [change.metric for change in telling_changes(changes)] == ["d", "b", "c"]


@pytest.mark.parametrize(
    "wrapping",
    [
        "{}",
        '{{"optimization_point": {}}}',
        "[{}]",
        "Here it is:\n```json\n{}\n```\nGood luck!",
        "{{}} is empty, but: {}",
        "```\n{}\n``` {{broken",
    ],
)
def test_json_is_found_in_any_wrapping(wrapping):
    told = fields_of_answer(wrapping.format(json.dumps(TOLD, indent=1)))
    assert (told.title, told.bottleneck, told.keywords) == ("Longer", "Short instructions", ("a", "b"))


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"family": None}, "family", ""),
        ({"family": "Kernel / Memory.2 Scatter!"}, "family", "kernel_memory.scatter"),
        ({"keywords": "one"}, "keywords", ("one",)),
        ({"keywords": [1, None, "two", ["three"], {}]}, "keywords", ("1", "two")),
        ({"avoid_when": {"a": 1}}, "avoid_when", ()),
        ({"title": "two\nlines"}, "title", "two lines"),
        ({"description": ["first", "second"]}, "description", "first; second"),
        ({"description": 7}, "description", "7"),
        ({"description": "a \ud800 b"}, "description", "a � b"),
        ({"bottleneck": "x" * 10_000}, "bottleneck", "x" * 2000),
    ],
)
def test_fields_of_wrong_types_are_made_to_fit_or_left_empty(change, field, value):
    assert getattr(fields_of_answer(json.dumps({**TOLD, **change})), field) == value


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I cannot help with that.",
        "{" * 5000,
        '{"title": "cut off", "bottleneck": "',
        "[1, 2]",
        '{"a": 1}',
        '{"title": "", "bottleneck": "x"}',
        '{"title": "x", "bottleneck": {"a": 1}}',
        '{"title": "x"}',
    ],
)
def test_answers_that_cannot_be_used_are_values(answer):
    found = fields_of_answer(answer)
    assert isinstance(found, Unreadable)
    assert isinstance(_distilled(Model(answer), step()), Unreadable)


def test_an_unusable_answer_is_asked_for_once_more():
    class Second(Model):
        def complete(self, messages, *, seed, **options):
            answers.append(seed)
            return (
                super().complete(messages, seed=seed, **options)
                if len(answers) > 1
                else Completion('{"title": "cut', 10, 5, "scripted")
            )

    answers = []
    assert _distilled(Second(json.dumps(TOLD)), step()).title == "Longer"
    assert len(set(answers)) == 2


def test_missing_fields_are_empty_and_a_missing_family_is_the_kernels():
    experience = _distilled(Model('{"title": "t", "bottleneck": "b"}'), step())
    assert (experience.applicability, experience.keywords, experience.family) == ("", (), "kernel.whole_call")


def _offline(pair):
    found = _distilled(OfflineModel(), pair)
    assert isinstance(found, Experience)
    return found


def test_the_offline_model_tells_of_the_pipe_whose_work_shrank():
    vec = _offline(step(slow={"aiv_vec_time": 12.0, "aiv_vec_instructions": 70}, fast={"aiv_vec_time": 5.0}))
    assert "vec time falls by 7.00 us a core, core time by 10.00 us" in vec.root_mechanism
    assert "vec time" in vec.root_mechanism
    assert "aiv_vec_instructions 70 -> 7" in vec.expected_effect
    assert "vec" in vec.keywords
    even = {f"aiv_{pipe}_time": 3.0 for pipe in ("vec", "scalar", "mte2", "mte3")}
    waiting = _offline(step(slow=even, fast=even))
    assert "waiting went" in waiting.root_mechanism


def test_the_offline_model_tells_the_state_of_the_slow_version():
    ratios = {"aiv_mte2_ratio": 0.62, "aiv_vec_ratio": 0.21, "gm_to_ub_bytes": 7 * 512}
    told = _offline(step("tile_size", slow=ratios))
    for fact in (
        "busiest pipe is mte2",
        "aiv_vec_ratio 0.21",
        "waits 38%",
        "512 bytes per MTE2",
        "block_dim 40",
    ):
        assert fact in told.bottleneck
    assert "`Mul(d, a, b, n / 2);` becomes `Mul(d, a, b, n);`" in told.description
    assert told.family == "host.tiling.tile_size"


def test_the_offline_model_tells_of_motifs_that_it_does_not_know():
    told = _offline(step("mystery", slow={"aiv_mte2_time": 18.0}, fast={"aiv_mte2_time": 2.0}))
    assert told.family == "kernel.data_movement.mystery"
    assert told.bottleneck.startswith(mechanism_of("mystery", Family.DATA_MOVEMENT).symptom)


def test_the_offline_model_says_so_where_there_is_nothing_to_tell():
    text = OfflineModel().complete([], seed=0, max_tokens=100, deadline_s=1.0).text
    assert isinstance(fields_of_answer(text), Unreadable)


def test_mechanisms_are_known_for_every_family_and_their_motifs_are_rules():
    assert {each.family for each in mechanisms() if each.family} == set(Family)
    named = [motif for each in mechanisms() for motif in each.motifs]
    assert len(named) == len(set(named))
    assert set(named) <= {rule.name for rule in RULES}
    assert len({each.symptom for each in mechanisms()}) == len(mechanisms())


def test_the_same_pair_is_told_in_the_same_words():
    assert _offline(step()) == _offline(step())
