"""Prompts hold what a model needs, and templates are filled exactly."""

import pytest
from conftest import FakeEvaluator, make_spec

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import DType, MeasureProtocol, TensorSpec, Tolerance
from ascend_gym.rewrites.fenced import SEARCH_LINE, sections
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.prompts import best_of_n_messages, cases_text, describe_case, prompt_digest
from ascend_gym.search.llm.template import render
from ascend_gym.suite.requests import request_for

SPEC = make_spec(tiling="constexpr int TILE = 8; // ${not_a_field}\n", kernel="int k; // 块 ```\n")


def _measured(kernel=""):
    evaluator = FakeEvaluator()
    candidate = SPEC.baseline.rewritten(kernel=kernel) if kernel else SPEC.baseline
    evaluator.submit(request_for(SPEC, candidate, MeasureProtocol()))
    return evaluator.poll(0)[0][1]


def test_best_of_n_shows_sources_cases_and_measurement():
    system, user = best_of_n_messages(SPEC, _measured())
    assert (system.role, user.role) == ("system", "user")
    files = {section.path: section.body for section in sections(user.content)}
    assert files == {
        "op_host/toy.cpp": SPEC.baseline.tiling_text,
        "op_kernel/toy.cpp": SPEC.baseline.kernel_text,
    }
    for fact in (
        "core/toy",
        "a toy",
        "small: (x float16 8x128)",
        "latency: 100.00 us",
        "aiv_mte2_ratio=0.500",
    ):
        assert fact in user.content
    assert "automatic synchronisation off" in user.content
    assert SEARCH_LINE in system.content
    assert "${" not in user.content.replace("${not_a_field}", "")


def test_equal_prompts_have_equal_digests():
    messages = best_of_n_messages(SPEC, _measured())
    assert prompt_digest(messages) == prompt_digest(best_of_n_messages(SPEC, _measured()))
    assert prompt_digest(messages) != prompt_digest(messages[1:])


def test_failures_are_described_by_their_diagnostics():
    text = describe_result(_measured("// status: runtime_fault"))
    assert text.startswith("status: runtime_fault\n- [run_kernel] ")
    assert "latency" not in text


def test_cases_with_lists_absent_inputs_and_attributes():
    case = SPEC.cases[0].model_copy(
        update={
            "inputs": (
                TensorSpec(name="xs", dtype=DType.FLOAT32, shapes=((2, 3), (4,)), dynamic=True),
                TensorSpec(name="b", dtype=DType.INT8, shapes=((),), optional_absent=True),
                TensorSpec(name="c", dtype=DType.INT32, shapes=((),)),
            ),
            "attributes": {"eps": 1e-6, "axis": (0, 1)},
        }
    )
    assert describe_case(case) == (
        "- small: (xs float32 list of 2: 2x3 4, b int8 absent, c int32 scalar) -> (x float16 8x128)"
        " with axis=(0, 1), eps=1e-06"
    )


@pytest.mark.parametrize("values", [{}, {"op_type": "Toy"}, {"nonsense": "x"}])
def test_templates_are_filled_exactly(values):
    with pytest.raises(MisuseError, match="sources"):
        render("best_of_n", **values)


@pytest.mark.parametrize(
    ("tolerance", "told"),
    [
        (
            Tolerance(atol=1e-5, rtol=1e-3),
            "|output - reference| <= 1e-05 + 0.001 * |reference|; for every element",
        ),
        (
            Tolerance(atol=0.1, rtol=0, max_bad_share=0.02),
            "0.02 of the elements may exceed that, none tenfold",
        ),
        (Tolerance(atol=0, rtol=0), "outputs must equal the reference"),
    ],
)
def test_tolerances_are_told_as_numbers(tolerance, told):
    case = SPEC.cases[0].model_copy(update={"tolerance": {DType.FLOAT16: tolerance}})
    *_, line = cases_text(SPEC.model_copy(update={"cases": (case,)})).split("\n")
    assert line.startswith("- float16 outputs")
    assert line.endswith(told)


def test_the_system_prompt_has_no_fields_and_leaves_the_form_of_answers_open():
    assert render("system").startswith("You are")
    assert SEARCH_LINE not in render("system")
