"""Bank construction: noise, the strongest start, one folder per operator that can be gone on with."""

import json

import pytest
from conftest import FakeEvaluator, make_spec, ok_result

from agents.ascend_optimizer.construction import (
    LESSONS_NAME,
    NOISE_NAME,
    ConstructionSettings,
    construct,
    strongest_known,
)
from agents.ascend_optimizer.noise import FLOOR, calibrate, noise_of
from ascend_gym.core.errors import BudgetExceededError, InfrastructureError, MisuseError, ModelError
from ascend_gym.core.protocols import Completion
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.model_client import ModelClient

SPEC = make_spec(kernel="int k;\n// latency: 100\n")
SETTINGS = ConstructionSettings(budget=3, model="scripted", seed=0, chip="910B2")
LESSON = '{"title": "t", "bottleneck": "b"}'


class Model:
    """Makes the kernel slower when asked to rewind, and tells a lesson when asked to distil."""

    def __init__(self, *lessons):
        self.lessons = list(lessons)
        self.asked = []

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        task = messages[-1].content.partition("\n")[0].removeprefix("# Task: ")
        self.asked.append(task)
        return Completion(self._distilled() if task == "distill" else self._rewound(), 10, 5, "scripted")

    def _distilled(self):
        lesson = self.lessons.pop(0) if self.lessons else LESSON
        if isinstance(lesson, Exception):
            raise lesson
        return lesson

    def _rewound(self):
        number = self.asked.count("rewind")
        motif = f"motif_{'abcdefg'[number]}"
        kernel = f"int k;\n// latency: {100 + 20 * number}\n// without {motif}\n"
        return f"Motif: {motif}\n### FILE: op_kernel/toy.cpp\n```cpp\n{kernel}```\n"


def _construct(folder, llm, evaluator=None, settings=SETTINGS):
    ledger = BudgetLedger(Budget(settings.budget))
    return construct(SPEC, ModelClient(llm, seed=0), evaluator or FakeEvaluator(), ledger, folder, settings)


def test_pairs_for_which_no_tokens_are_left_are_not_distilled(tmp_path):
    harvest = _construct(tmp_path, Model(LESSON, BudgetExceededError("no tokens left")))
    assert len(harvest.experiences) == harvest.steps - 1
    assert harvest.problems == ("unusable answer: no tokens left",)


def test_validated_pairs_become_experiences(tmp_path):
    harvest = _construct(tmp_path, Model())
    assert [each.motif for each in harvest.experiences] == ["motif_b", "motif_c", "motif_d"]
    assert (harvest.steps, harvest.evaluations, harvest.problems) == (3, 3, ())
    assert harvest.noise.tau_noise == FLOOR


def test_a_lesson_that_cannot_be_read_is_reported_and_the_others_stay(tmp_path):
    harvest = _construct(tmp_path, Model(LESSON, "no", "no again", LESSON))
    assert [each.motif for each in harvest.experiences] == ["motif_b", "motif_d"]
    assert len(harvest.problems) == 1
    assert "JSON object" in harvest.problems[0]


def test_a_construction_that_is_done_is_not_repeated(tmp_path):
    first = _construct(tmp_path, Model())
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    evaluator = FakeEvaluator()
    again = _construct(tmp_path, llm := Model(), evaluator)
    assert again == first
    assert evaluator.requests == []
    assert "distill" not in llm.asked
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_a_model_that_breaks_while_distilling_is_asked_on_from_there(tmp_path):
    with pytest.raises(ModelError):
        _construct(tmp_path, Model(LESSON, ModelError("gone")))
    assert len((tmp_path / LESSONS_NAME).read_text().splitlines()) == 1
    resumed = _construct(tmp_path, llm := Model())
    assert llm.asked.count("distill") == 2
    assert resumed.experiences == _construct(tmp_path / "unbroken", Model()).experiences


class DiesAfter(FakeEvaluator):
    """Is interrupted when a request comes after so many."""

    def __init__(self, requests, error):
        super().__init__()
        self._left, self._error = requests, error

    def submit(self, request):
        self._left -= 1
        if self._left < 0:
            raise self._error
        return super().submit(request)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InfrastructureError("the daemon is gone")])
@pytest.mark.parametrize("requests", [2, 5, 7])
def test_a_construction_that_was_broken_off_goes_on(tmp_path, error, requests):
    with pytest.raises(type(error)):
        _construct(tmp_path / "broken", Model(), DiesAfter(requests, error))
    resumed = _construct(tmp_path / "broken", Model())
    whole = _construct(tmp_path / "whole", Model())
    assert resumed == whole
    for name in (JOURNAL_NAME, LESSONS_NAME, NOISE_NAME):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_another_construction_in_the_same_folder_is_refused(tmp_path):
    _construct(tmp_path, Model())
    with pytest.raises(MisuseError, match="began with other settings: seed was 0, is 1"):
        _construct(tmp_path, Model(), settings=SETTINGS.model_copy(update={"seed": 1}))


def test_noise_is_calibrated_without_the_cache_and_kept(tmp_path):
    class Noisy(FakeEvaluator):
        def _answer(self, number, request):
            return ok_result(request, 100.0 + (3.0 if number == 2 else 0.0) + 20 * max(0, number - 5))

    evaluator = Noisy()
    harvest = _construct(tmp_path, Model(), evaluator)
    assert [request.use_cache for request in evaluator.requests[:6]] == [False] * 5 + [True]
    assert harvest.noise.spread == pytest.approx(0.03)
    assert harvest.noise.tau_noise == pytest.approx(0.06)
    assert json.loads((tmp_path / NOISE_NAME).read_text())["spread"] == harvest.noise.spread


def test_a_quiet_device_has_the_least_threshold():
    assert noise_of((10.0, 10.0)).tau_noise == FLOOR
    assert noise_of((10.0, 10.01)).tau_noise == FLOOR
    assert noise_of((10.0, 10.1)).tau_noise == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("status", "error"), [(Status.INCORRECT, MisuseError), (Status.INFRA_ERROR, InfrastructureError)]
)
def test_noise_of_what_cannot_be_measured(status, error):
    with pytest.raises(error, match="core/toy"):
        calibrate(FakeEvaluator({2: status}), SPEC, SPEC.baseline, MeasureProtocol())


def _run(folder, latency_us, kernel, operator="core/toy", digest=None):
    candidate = SPEC.baseline.rewritten(kernel=kernel)
    for path, text in candidate.texts.items():
        (folder / "best" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "best" / path).write_text(text)
    summary = {
        "operator": operator,
        "best_latency_us": latency_us,
        "best_digest": digest or candidate.digest,
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    return candidate


def test_the_strongest_of_earlier_searches_is_the_start(tmp_path):
    assert strongest_known(SPEC, []) == SPEC.baseline
    _run(tmp_path / "a", 80.0, "int a;\n")
    best = _run(tmp_path / "deep" / "b", 60.0, "int b;\n")
    _run(tmp_path / "c", 10.0, "int c;\n", operator="core/other")
    _run(tmp_path / "d", None, "int d;\n")
    assert strongest_known(SPEC, [tmp_path / "a", tmp_path]) == best


def test_files_that_are_not_the_summarys_are_refused(tmp_path):
    _run(tmp_path, 80.0, "int a;\n", digest="0" * 64)
    with pytest.raises(MisuseError, match="does not hold the candidate"):
        strongest_known(SPEC, [tmp_path])
    (tmp_path / "best" / SPEC.baseline.kernel.main).unlink()
    with pytest.raises(MisuseError, match="cannot be read"):
        strongest_known(SPEC, [tmp_path])
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(MisuseError, match="not the summary of a run"):
        strongest_known(SPEC, [tmp_path])
