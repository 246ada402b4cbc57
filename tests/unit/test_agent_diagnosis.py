"""Evidence from the profile, defensive reading of diagnoses, and the prompts of the agent."""

from pathlib import Path

import pytest
from conftest import make_spec, ok_result
from experiences import make_experience

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
from agents.ascend_optimizer.template import template_messages
from agents.ascend_optimizer.tiling_search import MUTATIONS, mutation_messages
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import Diagnostic, MeasureProtocol, Phase, failed_result
from ascend_gym.core.status import Status
from ascend_gym.rewrites.answer import ParseProblem
from ascend_gym.rewrites.fenced import SEARCH_LINE, sections
from ascend_gym.search.llm.sheets import CALLS_HEADING, TARGET_HEADING
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for

AFFINE = Path(__file__).parents[1] / "operators" / "affine"
SPEC = make_spec(tiling="int tiling;\n", kernel="int kernel;\n")
REQUEST = request_for(SPEC, SPEC.baseline, MeasureProtocol())


def _incumbent():
    return Incumbent(SPEC.baseline, ok_result(REQUEST, 100.0))


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
    diagnosis = Diagnosis("pipes wait", "loops", ())
    retrieved = [Retrieved(make_experience(), 0.5)]
    return {
        "template": template_messages(SPEC, incumbent),
        "mutate-tiling": mutation_messages(
            SPEC, [incumbent] * 2, MUTATIONS["logic"], attempts, "1 of at most 1"
        ),
        "diagnose": diagnosis_messages(SPEC, incumbent, attempts),
        "refine": refine_messages(SPEC, incumbent, diagnosis, retrieved, attempts, "1 of at most 1"),
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
    assert (TARGET_HEADING in system.content) == (task != "template")
    assert (CALLS_HEADING in system.content) == (task != "template")


def test_what_may_change_is_told_by_file():
    """A header of the kernel that host files include is no file of the kernel alone."""
    spec = load_operator("affine", op_dir=AFFINE)
    incumbent = Incumbent(
        spec.baseline, ok_result(request_for(spec, spec.baseline, MeasureProtocol()), 100.0)
    )
    refine = refine_messages(spec, incumbent, Diagnosis("", "", {}), [], "", "1 of at most 1")[1].content
    assert "in these files alone: `op_kernel/affine.cpp`. All others are fixed" in refine
    assert "it is in these files: `op_host/affine.cpp`." in template_messages(spec, incumbent)[1].content
    header = "op_kernel/affine_tiling_key.h"
    assert header in spec.baseline.texts
    edit = f"### FILE: {header}\n```cpp\nint nothing;\n```\n"
    problem = str(kernel_from_answer(edit, spec.baseline))
    assert "expected changes in `op_kernel/affine.cpp` alone" in problem


@pytest.mark.parametrize("task", ["mutate-tiling", "diagnose", "refine"])
def test_failed_attempts_are_told_with_their_diagnostics(task):
    user = _messages()[task][1].content
    failed = "### Attempt 1, failed: build_error\n- [build_kernel] no such thing\n"
    assert f"{failed}~~~~diff\ndiff of op_kernel/toy.cpp\n" in user


def test_experience_is_told_with_its_evidence_and_without_file_names():
    text = describe_experience(1, make_experience(reuse_guidance=""))
    assert "- measured on core/toy, 910B2: 1.200x faster" in text
    assert "- motif: barrier_removal (kernel.pipelining.barrier_removal)" in text
    assert "-    Wait();" in text
    assert "op_kernel" not in text
    assert "- how: The barrier between copy and compute is not there." in text


@pytest.mark.parametrize(
    "answer",
    [
        "Bottleneck: copies\n\n### FILE: op_kernel/toy.cpp\n```cpp\nint kernel = 1;\n```\n",
        "Bottleneck: copies\n```cpp\nint kernel = 1;\n```\n",
    ],
)
def test_code_behind_a_diagnosis_is_not_pasted_on(answer):
    assert read_diagnosis(answer) == ("copies", "")


def test_a_kernel_is_no_diagnosis():
    problem = read_diagnosis("### FILE: op_kernel/toy.cpp\n```cpp\nint kernel = 1;\n```\n")
    assert isinstance(problem, ParseProblem)
    assert "expected two paragraphs" in problem.message
