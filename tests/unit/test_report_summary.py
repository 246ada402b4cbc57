import json
import math

import pytest
from conftest import FakeEvaluator, make_profile, make_spec

from ascend_gym.core.records import (
    Accuracy,
    CaseResult,
    Diagnostic,
    EvalResult,
    MeasureProtocol,
    Phase,
)
from ascend_gym.core.status import Status
from ascend_gym.env.evaluation import evaluate
from ascend_gym.report.summary import evaluation_summary, to_json
from ascend_gym.suite.requests import request_for


def _result(kernel):
    spec = make_spec()
    request = request_for(spec, spec.baseline.rewritten(kernel=kernel), MeasureProtocol())
    return evaluate(FakeEvaluator(), request)


def _partly_wrong():
    """Return a result of which one case is measured and the other is infinitely wrong."""
    accuracy = Accuracy(
        max_abs_error=math.inf, max_rel_error=math.nan, bad_share=1.0, upstream_rule_passes=False
    )
    diagnostic = Diagnostic(phase=Phase.VERIFY, message="element 3 is NaN")
    cases = (
        CaseResult(case_id="small", status=Status.OK, samples_us=(10.0,), profile=make_profile(10.0)),
        CaseResult(case_id="large", status=Status.INCORRECT, accuracy=accuracy, diagnostics=(diagnostic,)),
    )
    return EvalResult(request_digest="r", candidate_digest="c", status=Status.INCORRECT, cases=cases)


def test_mean_profile_averages_the_cases():
    profile = _result("// latency: 10").mean_profile
    assert profile["task_duration_us"] == pytest.approx((5 + 20) / 2)
    assert profile["block_dim"] == 40
    assert _result("// status: timeout").mean_profile is None


def test_summary_of_a_partly_wrong_result_is_strict_json():
    summary = evaluation_summary(make_spec(), _partly_wrong(), _result("// latency: 40"))
    read = json.loads(to_json(summary), parse_constant=pytest.fail)
    small, large = read["cases"]
    assert (read["latency_us"], read["speedup"]) == (None, None)
    assert (small["latency_us"], small["baseline_latency_us"], small["speedup"]) == (10.0, 20.0, 2.0)
    assert (large["latency_us"], large["baseline_latency_us"], large["speedup"]) == (None, 80.0, None)
    assert large["accuracy"]["max_abs_error"] is None
    assert large["accuracy"]["bad_share"] == 1.0
    assert [each["message"] for each in read["diagnostics"]] == ["element 3 is NaN"]


def test_summary_beside_a_failed_baseline_has_no_speedup():
    summary = evaluation_summary(make_spec(), _result("// latency: 40"), _result("// status: timeout"))
    assert summary["latency_us"] == pytest.approx(40.0)
    assert (summary["baseline_latency_us"], summary["speedup"]) == (None, None)
