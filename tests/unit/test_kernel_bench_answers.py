"""Answers of MultiKernelBench: strings that are read and never run, under our names and back."""

import ast

import pytest

from agents.ascend_craft.draft import drafted
from ascend_gym.core.errors import MisuseError
from ascend_gym.report.kernel_bench_answers import answer_of, candidate_of, read_answer, task_of
from ascend_gym.staged.lower import lower
from ascend_gym.staged.parse import parse
from ascend_gym.staged.verify import verify
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.skeleton import interface_of


def _ours(name):
    spec = load_operator(f"generate/{name}")
    return spec, lower(verify(parse(drafted(spec)), interface_of(spec), spec.cases))


@pytest.mark.parametrize(
    "name", ["relu", "leaky_relu", "sum_reduction", "mse_loss", "max_pooling_2d", "adam"]
)
def test_our_candidates_become_answers_and_come_back(name):
    spec, ours = _ours(name)
    answer = answer_of(ours, spec)
    assert read_answer(f"Here it is.\n\n```python\n{answer.text}```\n") == answer
    back = candidate_of(read_answer(answer.text), spec)
    assert back.kernel_text == ours.kernel_text
    assert f'#include "{task_of(name)}_custom_tiling.h"' in back.tiling_text
    header = next(text for path, text in back.texts.items() if path.endswith("_custom_tiling.h"))
    assert f"BEGIN_TILING_DATA_DEF({spec.op_type}TilingData)" in header
    assert f"class {spec.op_type} : public OpDef" in back.tiling_text
    assert "Custom" not in back.tiling_text


def test_an_answer_binds_the_operator_and_makes_its_outputs():
    spec, ours = _ours("max_pooling_1d")
    texts = answer_of(ours, spec).texts
    assert (
        "EXEC_NPU_CMD(aclnnMaxPooling1dCustom, x, kernel, padding, stride, yMade)" in texts["python_bind_src"]
    )
    assert "x.size(2) + 2 * padding - kernel) / stride + 1" in texts["python_bind_src"]
    assert '"op": "MaxPooling1dCustom"' in texts["project_json_src"]
    ast.parse(texts["model_src"])


THEIRS = '''
import shutil
shutil.rmtree("/")  # nothing of an answer is run
host_tiling_src = """#include "register/tilingdata_base.h" // SlopeCustom"""
host_operator_src = """#include "slope_custom_tiling.h"
class SlopeCustom : public OpDef { SlopeCustom(const char* name) : OpDef(name) {
this->Input("inp").ParamType(REQUIRED); this->Output("res").ParamType(REQUIRED); } };
OP_ADD(SlopeCustom);"""
kernel_src = """extern "C" __global__ __aicore__ void slope_custom(GM_ADDR inp, GM_ADDR res) {
DTYPE_INP a; DTYPE_RES b; }"""
'''


def test_names_of_theirs_become_ours_and_what_they_lack_is_added():
    spec = load_operator("generate/leaky_relu")
    candidate = candidate_of(read_answer(THEIRS), spec)
    assert 'this->Input("x")' in candidate.tiling_text
    assert 'this->Output("y")' in candidate.tiling_text
    assert 'this->Attr("slope").AttrType(REQUIRED).Float()' in candidate.tiling_text
    assert "OP_ADD(LeakyRelu)" in candidate.tiling_text
    assert "void leaky_relu(" in candidate.kernel_text
    assert "DTYPE_X a; DTYPE_Y b;" in candidate.kernel_text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kernel_src = (", "no Python text"),
        ("kernel_src = '\\0" + "('", "assigns no plain string"),
        ("kernel_src = open('x').read()", "assigns no plain string to host_tiling_src"),
        ("(" * 5000, "no Python text"),
        ("x" * 1_000_001, "expected at most"),
        (THEIRS.replace("OP_ADD(SlopeCustom)", ""), "OP_ADD"),
        (THEIRS.replace("__global__", ""), "__global__"),
    ],
)
def test_what_is_no_answer_is_refused_with_the_reason(text, told):
    with pytest.raises(MisuseError, match=told.replace("(", r"\(")):
        candidate_of(read_answer(text), load_operator("generate/leaky_relu"))
