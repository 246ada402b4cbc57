"""Lowering by a model: what a pass is asked, what is built after it, and where a failure goes back to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import FakeEvaluator

from agents.ascend_craft.agent import AscendCraft
from agents.ascend_craft.checking import checked
from agents.ascend_craft.draft import RuleDrafter, drafted
from agents.ascend_craft.lowering import MAX_REPAIRS, ModelLowerer, pass_to_blame
from agents.ascend_craft.rule_model import RuleModel
from agents.ascend_craft.settings import Lowering
from ascend_gym.core.errors import BudgetExceededError
from ascend_gym.core.records import CaseResult, Diagnostic, EvalResult, Phase, failed_result
from ascend_gym.core.status import Status
from ascend_gym.rewrites.fenced import render_file
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import StopReason
from ascend_gym.staged.examples import Examples, example_for, example_names
from ascend_gym.staged.lower import Pass, lower
from ascend_gym.suite.loader import load_operator

SPEC = load_operator("generate/softplus")
TEXT = drafted(SPEC)
VERIFIED = checked(SPEC, TEXT, SPEC.cases[-1:])
OBJECTION = Diagnostic(phase=Phase.BUILD_KERNEL, message="no member named 'VectorAdds'")


class Builder:
    """Objects to the candidates for which ``objects`` is true."""

    def __init__(self, objects=lambda candidate: False):
        self.objects, self.built = objects, []

    def build(self, candidate):
        self.built.append(candidate)
        return (OBJECTION,) if self.objects(candidate) else ()


class Asked(RuleModel):
    """Keeps the questions."""

    def __init__(self, spec, fault_rate=0.0):
        super().__init__(spec, fault_rate)
        self.questions = []

    def complete(self, messages, **limits):
        self.questions.append(messages)
        return super().complete(messages, **limits)


def _lowerer(builder=None, fault_rate=0.0, **settings):
    model = Asked(SPEC, fault_rate)
    lowerer = ModelLowerer(SPEC, ModelClient(model, seed=0), **settings)
    lowerer.use_builder(builder or Builder())
    return lowerer, model


def test_what_there_is_after_each_pass_leads_to_what_the_rules_make():
    candidates = [lower(VERIFIED, each) for each in Pass]
    assert candidates[-1] == lower(VERIFIED)
    assert len({each.tiling_text for each in candidates}) == 1
    plan, state, stages, align = (each.kernel_text for each in candidates)
    assert "class KernelSoftplus" not in plan
    assert "InitBuffer" in state
    assert "DataCopy" not in state
    assert "DataCopy(" in stages
    assert "DataCopyPad(" not in stages
    assert "DataCopyPad(" in align


def test_four_passes_are_four_questions_and_four_builds_and_one_pass_is_one():
    for lowering, questions in ((Lowering.FOUR_PASSES, 4), (Lowering.ONE_PASS, 1)):
        builder = Builder()
        lowerer, model = _lowerer(builder, lowering=lowering)
        lowered = lowerer.lower(TEXT, VERIFIED)
        assert lowered.candidate == lower(VERIFIED)
        assert len(model.questions) == len(builder.built) == questions
        assert sum(each["builds"] for each in lowered.passes) == questions


def test_without_builds_between_passes_nothing_is_built():
    builder = Builder(lambda candidate: True)
    lowerer, _ = _lowerer(builder, builds=False)
    assert lowerer.lower(TEXT, VERIFIED).candidate == lower(VERIFIED)
    assert not builder.built


def test_a_pass_that_does_not_build_is_told_why_and_asked_again():
    builder = Builder(lambda candidate: "set_missing" in candidate.tiling_text)
    lowerer, model = _lowerer(builder, fault_rate=1.0, lowering=Lowering.FOUR_PASSES)
    lowered = lowerer.lower(TEXT, VERIFIED)
    assert lowered.passes[0] == {"pass": "plan", "builds": 2, "objections": [str(OBJECTION)]}
    assert "That does not build" in model.questions[1][-1].content
    assert "VectorAdds" in model.questions[1][-1].content
    assert lowered.candidate.tiling_text == lower(VERIFIED).tiling_text


class Unchanging(Asked):
    """Answers with the files of ``kept`` once it is there."""

    kept = None

    def complete(self, messages, **limits):
        answer = super().complete(messages, **limits)
        if self.kept is None:
            return answer
        return replace(answer, text="\n".join(render_file(*each) for each in self.kept.texts.items()))


def test_a_repair_that_changes_nothing_is_no_repair():
    for result in (_failed(Status.RUNTIME_FAULT, call="DataCopy(GM->UB)"), _failed(Status.INCORRECT)):
        model = Unchanging(SPEC)
        lowerer = ModelLowerer(SPEC, ModelClient(model, seed=0), builds=False)
        model.kept = lowerer.lower(TEXT, VERIFIED).candidate
        model.questions.clear()
        mended = lowerer.repair(TEXT, VERIFIED, model.kept, result)
        assert mended.candidate is None
        assert f"has no usable answer after {MAX_REPAIRS} repairs: " in mended.problem
        told = [each for each in model.questions if "That answer cannot be used: " in each[-1].content]
        assert len(told) == MAX_REPAIRS
        assert not any("does not build" in each[-1].content for each in told)


def test_a_pass_that_never_builds_ends_the_lowering():
    lowerer, _ = _lowerer(Builder(lambda candidate: True))
    lowered = lowerer.lower(TEXT, VERIFIED)
    assert lowered.candidate is None
    assert "pass plan has no usable answer" in lowered.problem
    assert len(lowered.passes[0]["objections"]) == MAX_REPAIRS + 1


@pytest.mark.parametrize("examples", Examples)
def test_questions_show_an_example_that_is_another_operator(examples):
    lowerer, model = _lowerer(examples=examples)
    lowerer.lower(TEXT, VERIFIED)
    shown = {"none": None, "basic": "relu", "category": "elu"}[examples.value]
    for question in model.questions:
        assert ("## An example" in question[1].content) == (shown is not None)
        assert shown is None or f"The program of operator {shown}:" in question[1].content
        assert TEXT in question[1].content


def test_the_rules_of_a_pass_name_the_instructions_of_the_program_alone():
    lowerer, model = _lowerer()
    lowerer.lower(TEXT, VERIFIED)
    stages = model.questions[2][0].content
    assert "`Ln(dst, a, n)`" in stages
    assert "`Gather(" not in stages
    assert "Pass plan" not in stages


def test_examples_are_of_every_category_but_one_and_never_the_operator_itself():
    for name in example_names():
        spec = load_operator(f"generate/{name}")
        for wanted in (Examples.BASIC, Examples.CATEGORY):
            assert example_for(spec, wanted).spec.name != name
    assert example_for(load_operator("generate/max_pooling_2d"), Examples.CATEGORY).spec.category == "pooling"
    assert example_for(load_operator("generate/mhc_post"), Examples.CATEGORY).spec.name == "relu"


def _failed(status, *, phase=Phase.RUN_KERNEL, call=None, passed=()):
    told = Diagnostic(phase=phase, message="wrong", call=call)
    wrong = next(case.case_id for case in SPEC.cases if case.case_id not in passed)
    ok = [CaseResult.model_construct(case_id=name, status=Status.OK, diagnostics=()) for name in passed]
    bad = CaseResult.model_construct(case_id=wrong, status=status, diagnostics=(told,))
    return EvalResult.model_construct(status=status, cases=(*ok, bad), diagnostics=())


def test_a_failure_goes_back_to_the_pass_that_is_to_blame():
    even = [case.case_id for case in SPEC.cases if case.inputs[0].shapes[0][-1] % 8 == 0]
    assert 0 < len(even) < len(SPEC.cases)
    blamed = {
        "tiling": _failed(Status.TILING_ERROR),
        "host": _failed(Status.BUILD_ERROR, phase=Phase.BUILD_TILING),
        "copy": _failed(Status.RUNTIME_FAULT, call="DataCopy(GM->UB)"),
        "ragged": _failed(Status.INCORRECT, phase=Phase.VERIFY, passed=even),
        "wrong": _failed(Status.INCORRECT, phase=Phase.VERIFY),
        "kernel": _failed(Status.BUILD_ERROR, phase=Phase.BUILD_KERNEL),
    }
    assert {name: pass_to_blame(result, SPEC) for name, result in blamed.items()} == {
        "tiling": Pass.PLAN,
        "host": Pass.PLAN,
        "copy": Pass.ALIGN,
        "ragged": Pass.ALIGN,
        "wrong": Pass.STAGES,
        "kernel": Pass.STAGES,
    }


def test_what_was_evaluated_and_failed_is_mended_three_times_and_no_more():
    lowerer, model = _lowerer(builds=False)
    lowered = lowerer.lower(TEXT, VERIFIED)
    right = lowered.candidate
    broken = right.rewritten(kernel=right.kernel_text.replace("Ln(", "Exp("))
    result = _failed(Status.INCORRECT, phase=Phase.VERIFY)
    for _ in range(MAX_REPAIRS):
        assert lowerer.repair(TEXT, VERIFIED, broken, result).candidate == right
    assert lowerer.repair(TEXT, VERIFIED, broken, result) is None
    assert "this ended as incorrect" in model.questions[-1][1].content
    assert "Exp(" in model.questions[-1][1].content


def test_knobs_of_translated_sources_are_turned_in_their_host():
    lowerer, _ = _lowerer()
    candidate = lowerer.lower(TEXT, VERIFIED).candidate
    program = VERIFIED.program
    knob = next(iter(program.knobs.values()))
    other = next(each for each in knob.choices if each != knob.default)
    knobs = {**program.knobs, knob.name: replace(knob, default=other)}
    turned = lowerer.turned(candidate, replace(VERIFIED, program=replace(program, knobs=knobs)))
    assert f"{knob.name.upper()} = {other};" in turned.tiling_text
    assert turned.kernel_text == candidate.kernel_text
    hidden = candidate.rewritten(tiling=candidate.tiling_text.replace(knob.name.upper(), "Other"))
    assert lowerer.turned(hidden, VERIFIED) is None


class SmallCases(FakeEvaluator):
    """Knows whole operators, and of single cases that they build and are wrong."""

    def _answer(self, number, request):
        if not request.case_ids:
            return super()._answer(number, request)
        told = Diagnostic(phase=Phase.VERIFY, message="nothing was written")
        named = "// status: build_error" in request.candidate.kernel_text
        return failed_result(request, Status.BUILD_ERROR if named else Status.INCORRECT, told)


def _searched(folder, model, *, builds=None):
    folder.mkdir(exist_ok=True)
    strategy = AscendCraft(SPEC, RuleDrafter(SPEC), ModelLowerer(SPEC, ModelClient(model, seed=0)))
    ledger = BudgetLedger(Budget(3, builds=builds))
    evaluator = SmallCases()
    with Journal(folder) as journal:
        outcome = run_search(SPEC, strategy, evaluator, ledger, journal)
    return outcome, evaluator, (folder / JOURNAL_NAME).read_bytes()


def test_builds_are_metered_beside_evaluations_and_the_same_run_gives_the_same_bytes(tmp_path):
    outcome, evaluator, journal = _searched(tmp_path / "a", RuleModel(SPEC, 0.0))
    assert outcome.spent.builds == 4
    assert sum(each["builds"] for each in outcome.history[1].proposal.origin["passes"]) == 4
    smallest = min(SPEC.cases, key=lambda case: case.traffic_bytes).case_id
    assert [each.case_ids for each in evaluator.requests[1:5]] == [(smallest,)] * 4
    assert evaluator.requests[5].case_ids == ()
    assert _searched(tmp_path / "b", RuleModel(SPEC, 0.0))[2] == journal
    lines = journal.splitlines(keepends=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / JOURNAL_NAME).write_bytes(b"".join(lines[:5]))
    timings = (tmp_path / "a" / "timings.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "c" / "timings.jsonl").write_bytes(b"".join(timings[:2]))
    assert _searched(tmp_path / "c", RuleModel(SPEC, 0.0))[2] == journal


def test_a_search_ends_where_the_builds_are_spent(tmp_path):
    outcome, _, _ = _searched(tmp_path, RuleModel(SPEC, 0.0), builds=2)
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert outcome.spent.builds == 2
    assert "builds" in outcome.message


def test_a_build_says_what_the_compilers_say_and_nothing_of_the_run(tmp_path):
    seen = []

    class Curious:
        def use_builder(self, builder):
            self.builder = builder

        def propose(self, limit):
            seen.append(self.builder.build(SPEC.baseline.rewritten(kernel="// other")))
            seen.append(self.builder.build(SPEC.baseline.rewritten(kernel="// status: build_error")))
            with pytest.raises(BudgetExceededError):
                self.builder.build(SPEC.baseline)
            return []

        def observe(self, proposal, result):
            pass

        def close(self):
            pass

    ledger = BudgetLedger(Budget(1, builds=2))
    with Journal(tmp_path) as journal:
        run_search(SPEC, Curious(), SmallCases(), ledger, journal)
    assert seen[0] == ()
    assert seen[1][0].message == "nothing was written"


class Interrupted(SmallCases):
    """Is interrupted while it builds."""

    def __init__(self):
        super().__init__()
        self.cancelled = []

    def poll(self, timeout_s):
        if self.requests[-1].case_ids:
            raise KeyboardInterrupt
        return super().poll(timeout_s)

    def cancel(self, evaluation):
        self.cancelled.append(evaluation.request.case_ids)
        super().cancel(evaluation)


def test_an_interrupted_build_is_cancelled_and_refunded(tmp_path):
    strategy = AscendCraft(
        SPEC, RuleDrafter(SPEC), ModelLowerer(SPEC, ModelClient(RuleModel(SPEC, 0), seed=0))
    )
    evaluator, ledger = Interrupted(), BudgetLedger(Budget(3))
    with Journal(tmp_path) as journal:
        outcome = run_search(SPEC, strategy, evaluator, ledger, journal)
    assert outcome.stop_reason is StopReason.INTERRUPTED
    assert evaluator.cancelled == [evaluator.requests[-1].case_ids]
    assert outcome.spent.builds == 0


def test_the_stand_in_makes_faults_by_its_seed_and_mends_them():
    model = Asked(SPEC, fault_rate=1.0)
    lowerer = ModelLowerer(SPEC, ModelClient(model, seed=0), builds=False)
    lowered = lowerer.lower(TEXT, VERIFIED)
    assert lowered.candidate != lower(VERIFIED)
    again = ModelLowerer(SPEC, ModelClient(RuleModel(SPEC, 1.0), seed=0), builds=False)
    assert again.lower(TEXT, VERIFIED).candidate == lowered.candidate
    result = _failed(Status.BUILD_ERROR, phase=Phase.BUILD_TILING)
    assert lowerer.repair(TEXT, VERIFIED, lowered.candidate, result).candidate == lower(VERIFIED)
