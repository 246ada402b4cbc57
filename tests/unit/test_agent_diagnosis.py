"""Evidence from the profile, defensive reading of diagnoses, and the prompts of the agent."""

import pytest
from conftest import make_spec, ok_result
from experiences import make_experience

from agents.ascend_optimizer.diagnose import (
    Diagnosis,
    diagnosis_messages,
    evidence,
    read_diagnosis,
)
from agents.ascend_optimizer.incumbent import Incumbent, Memory
from agents.ascend_optimizer.refine import describe_experience, refine_messages
from agents.ascend_optimizer.retrieval import Retrieved
from agents.ascend_optimizer.template import template_messages
from agents.ascend_optimizer.tiling_search import MUTATIONS, mutation_messages
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import DeviceInfo, Diagnostic, MeasureProtocol, Phase, failed_result
from ascend_gym.core.status import Status
from ascend_gym.rewrites.fenced import SEARCH_LINE, sections
from ascend_gym.suite.requests import request_for

SPEC = make_spec(tiling="int tiling;\n", kernel="int kernel;\n")
REQUEST = request_for(SPEC, SPEC.baseline, MeasureProtocol())
DEVICE = DeviceInfo(backend="fake", chip="910B2", toolchain_digest="0", sandbox="none", host="here")


def _incumbent(device=DEVICE, **profile):
    result = ok_result(REQUEST, 100.0)
    cases = tuple(
        case.model_copy(update={"profile": case.profile.model_copy(update=profile)}) for case in result.cases
    )
    return Incumbent(SPEC.baseline, result.model_copy(update={"cases": cases, "device": device}))


def test_evidence_is_arithmetic_on_the_profile():
    incumbent = _incumbent(
        aiv_mte2_ratio=0.9, gm_to_ub_bytes=8192, aiv_mte2_instructions=4, aiv_vec_instructions=2, block_dim=40
    )
    small, large = evidence(SPEC, incumbent)
    assert small.startswith("- small: dominant pipe mte2 (90% of core time)")
    assert "2048 bytes per MTE2 instruction (small)" in small
    assert "2048 elements loaded per vector instruction" in small
    assert "block dim 40 of 48 vector cores" in large
    assert "waiting" not in large


def test_waiting_and_imbalance_are_named():
    (line, _) = evidence(SPEC, _incumbent(aiv_time=25.0, task_duration_us=50.0))
    assert "even the busiest pipe idles 50% of the time" in line
    assert "launch and imbalance over the cores take 50% of the task" in line


def test_evidence_without_instructions_or_a_known_chip():
    lines = evidence(SPEC, _incumbent(device=None, aiv_mte2_instructions=0, aiv_mte3_instructions=0))
    assert "per MTE2" not in lines[0]
    assert "block dim 40;" in lines[0]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Bottleneck: a\n b\nApplicability: c", ("a b", "c")),
        ("**Bottleneck:** a\n\n**Applicability:** c\n", ("a", "c")),
        ("## Applicability: c\n## BOTTLENECK : a", ("a", "c")),
        ("I think MTE2 is slow.", ("I think MTE2 is slow.", "")),
        ("", ("unknown", "")),
        ("Bottleneck:\nApplicability:", ("Bottleneck: Applicability:", "")),
        ("x \ud800", ("x �", "")),
    ],
)
def test_diagnoses_are_read_from_whatever_a_model_says(answer, expected):
    assert read_diagnosis(answer) == expected


def test_long_diagnoses_are_cut():
    assert len(read_diagnosis("Bottleneck: " + "x" * 99_999)[0]) <= 1500


def _messages():
    incumbent = _incumbent()
    memory = Memory()
    candidate = SPEC.baseline.rewritten(kernel="int other;\n")
    diagnostic = Diagnostic(phase=Phase.BUILD_KERNEL, message="no such thing")
    memory.note(incumbent, Proposal(candidate, {}), failed_result(REQUEST, Status.BUILD_ERROR, diagnostic))
    attempts = memory.describe()
    diagnosis = Diagnosis("pipes wait", "loops", {})
    retrieved = [Retrieved(make_experience(), 0.5)]
    return {
        "template": template_messages(SPEC, SPEC.baseline),
        "mutate-tiling": mutation_messages(SPEC, [incumbent] * 2, MUTATIONS["logic"], attempts),
        "diagnose": diagnosis_messages(SPEC, incumbent, attempts),
        "refine": refine_messages(SPEC, incumbent, diagnosis, retrieved, attempts),
    }


@pytest.mark.parametrize("task", ["template", "mutate-tiling", "diagnose", "refine"])
def test_every_prompt_names_its_task_and_shows_the_operator(task):
    system, user = _messages()[task]
    assert user.content.startswith(f"# Task: {task}\n")
    assert "${" not in user.content
    files = {section.path: section.body for section in sections(user.content) if section.path}
    assert files == {"op_host/toy.cpp": "int tiling;\n", "op_kernel/toy.cpp": "int kernel;\n"}
    assert (SEARCH_LINE in system.content) == (task != "diagnose")
    assert "core/toy" in user.content
    assert "small: (x float16 8x128)" in user.content


@pytest.mark.parametrize("task", ["mutate-tiling", "diagnose", "refine"])
def test_failed_attempts_are_told_with_their_diagnostics(task):
    user = _messages()[task][1].content
    assert (
        "### Attempt 1, failed: build_error\n- [build_kernel] no such thing\n~~~~diff\n-int kernel;" in user
    )


def test_experience_is_told_with_its_evidence_and_without_file_names():
    text = describe_experience(1, make_experience(reuse_guidance=""))
    assert "- motif: barrier_removal (kernel.pipelining.barrier_removal)" in text
    assert "-    Wait();" in text
    assert "op_kernel" not in text
    assert "- how: The barrier between copy and compute is not there." in text
