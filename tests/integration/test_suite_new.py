"""An operator that ``ascend-gym suite new`` began is a whole one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import MeasureProtocol, OpSpec
from ascend_gym.suite.cann_cases import REFERENCE_NAME
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.requests import request_for
from ascend_gym.suite.scaffold import begin_operator
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.pipeline import evaluate


def test_a_new_operator_evaluates_like_its_model(simulator: SimulatorBackend, tmp_path: Path) -> None:
    model = load_operator("exp")  # its type is the name of a call, too
    spec = load_operator("grow_fast", op_dir=begin_operator("grow_fast", tmp_path, model))
    assert spec.op_type == "GrowFast"
    assert [case.case_id for case in spec.cases] == [case.case_id for case in model.cases]
    case = min(spec.cases, key=lambda each: each.traffic_bytes)
    request = request_for(spec, spec.baseline, MeasureProtocol(), (case.case_id,))
    result = evaluate(request, spec, simulator, oracle_for(spec), CaseDataCache(tmp_path / "data", "harness"))
    assert result.latency_us is not None, [str(each) for each in result.all_diagnostics]


def test_methods_that_begin_like_the_model_keep_their_names(tmp_path: Path) -> None:
    for model in list_operators("core"):
        if len(model.baseline.texts) == 2 and (Path(model.folder) / REFERENCE_NAME).is_file():
            begun = load_operator("absdiff", op_dir=begin_operator("absdiff", tmp_path / model.name, model))
            before, after = (_methods(each) for each in (model, begun))
            assert after == before, model.op_id


def _methods(spec: OpSpec) -> list[str]:
    return re.findall(r"(?<=\.)\w+(?=\()", "\n".join(spec.baseline.texts.values()))


@pytest.mark.parametrize("name", ["Scale", "scale-rows", "2d", "", "../scale", "scale_"])
def test_names_that_are_none_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(MisuseError, match="an operator has a name such as"):
        begin_operator(name, tmp_path, load_operator("silu"))


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    begin_operator("scale", tmp_path, load_operator("silu"))
    with pytest.raises(MisuseError, match="exists"):
        begin_operator("scale", tmp_path, load_operator("silu"))
