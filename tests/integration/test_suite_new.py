"""An operator that ``ascend-gym suite new`` began is a whole one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import MeasureProtocol, OpSpec
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.requests import request_for
from ascend_gym.suite.scaffold import begin_operator
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.pipeline import evaluate

API_NAME = re.compile(r"(?:\.|->|AscendC::)\w+")


@pytest.mark.parametrize("name", ["exp", "add"])  # Exp is a call, too; Add is the beginning of .AddConfig
def test_a_new_operator_evaluates_like_its_model(
    simulator: SimulatorBackend, tmp_path: Path, name: str
) -> None:
    model = load_operator(name)
    spec = load_operator("grow_fast", op_dir=begin_operator("grow_fast", tmp_path, model))
    assert spec.op_type == "GrowFast"
    assert [case.case_id for case in spec.cases] == [case.case_id for case in model.cases]
    case = min(spec.cases, key=lambda each: each.traffic_bytes)
    request = request_for(spec, spec.baseline, MeasureProtocol(), (case.case_id,))
    result = evaluate(request, spec, simulator, oracle_for(spec), CaseDataCache(tmp_path / "data", "harness"))
    assert result.latency_us is not None, [str(each) for each in result.all_diagnostics]


@pytest.mark.parametrize("model", list_operators("core"), ids=lambda model: model.name)
def test_a_new_operator_has_its_own_type_and_the_api_names_of_its_model(
    tmp_path: Path, model: OpSpec
) -> None:
    spec = load_operator("grow_fast", op_dir=begin_operator("grow_fast", tmp_path, model))
    texts = zip(model.baseline.texts.values(), spec.baseline.texts.values(), strict=True)
    for before, after in texts:
        assert API_NAME.findall(after) == API_NAME.findall(before)
        assert "GrowFast" in after
        assert not re.search(rf"\b(class|Kernel|OP_ADD\(){model.op_type}\b", after)


@pytest.mark.parametrize("name", ["Scale", "scale-rows", "2d", "", "../scale", "scale_"])
def test_names_that_are_none_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(MisuseError, match="an operator has a name such as"):
        begin_operator(name, tmp_path, load_operator("silu"))


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    begin_operator("scale", tmp_path, load_operator("silu"))
    with pytest.raises(MisuseError, match="exists"):
        begin_operator("scale", tmp_path, load_operator("silu"))
