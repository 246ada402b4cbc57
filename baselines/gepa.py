"""GEPA: reflective evolution of the complete operator along a Pareto front, by the package of that name.

GEPA (https://pypi.org/project/gepa) keeps every version that is the best in some case, draws one of them by
how many cases it leads in, and has a model reflect on how that version did in a few cases. A new version
joins when its scores over these add up to more. It runs in a process of its own and comes back for two
things: reflections, which our model makes with our prompt, and evaluations, which become proposals. Its
components are the files of the operator, all of which a reflection may change. Its examples are the
operator's cases: one evaluation scores all of them, so that a budget of N is N versions. An answer that
cannot be used is spent as any other; the operator's own sources are the first version, and their evaluation
is the baseline's.

The score of a case is its speedup over the operator's own sources, 0 for versions that fail. An operator
without sources begins with 0, and its speedups are over the framework's calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from ascend_gym.core.best import speedup
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.protocols import Message, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.rewrites.answer import ParseProblem
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.search.llm.attempts import Attempt, describe_attempts
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.prompts import (
    case_fields,
    render_sources,
    system_message,
    task_fields,
    yardstick,
)
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import ModelClient, Reading, candidate_reader
from ascend_gym.search.outcome import BASELINE_ORIGIN, UnusableProposal
from ascend_gym.search.seeds import derived_seed
from baselines.package_link import Child, require_package

_SUPPORTED = "0.1."
_SIDE_BY_SIDE = "Several versions of the operator evolve side by side, each the fastest in some case. "
_KEPT_ALONE = "Yours is kept if it does."
_KEPT = (
    "Yours is kept as a further version if its speedups over that, added up over {these}, come to more "
    "than those of this version. What serves one case only can stand beside the rest, chosen by shape in "
    "the tiling program."
)


class Gepa:
    """Runs GEPA. A ``Strategy`` for ``ascend_gym.search.driver.run_search``; one proposal at a time."""

    def __init__(self, spec: OpSpec, model_client: ModelClient, *, seed: int) -> None:
        """Prepare an evolution of ``spec``; nothing is started yet.

        Args:
            spec: the operator.
            model_client: asks the model.
            seed: seed of the run.

        Raises:
            MisuseError: the package is not installed.
        """
        require_package("gepa", "GEPA", _SUPPORTED)
        self._spec, self._model_client, self._seed = spec, model_client, seed
        self._baseline: EvalResult | None = None
        self._measured: dict[str, EvalResult] = {}  # by digest of the version
        self._child: Child | None = None
        self._step = 0
        self._reading: Reading[Candidate] | None = None  # of this step
        self._parent, self._answer = spec.baseline, ""  # what this step's reflection was about, and gave
        self._attempts: list[Attempt] = []
        self._unanswered = ""  # what the question was that the awaited result answers

    def propose(self, limit: int) -> list[Proposal]:
        """Return the version of the next step; none while a result is awaited.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover another answer.
            InfrastructureError: GEPA broke down.
        """
        if self._baseline is None or self._unanswered or limit < 1:
            return []
        if self._child is None:
            self._child = Child(own_python_command("baselines.gepa_process"), "GEPA")
            self._begin(self._child, self._baseline)
        while (question := self._child.question()) is not None:
            version = with_texts(self._spec.baseline, question["files"])
            self._unanswered = question["ask"]
            if question["ask"] == "evaluate":
                return [self._proposal(version)]
            self._parent = version
            reading = self._reading = self._reflected(version, question["cases"])
            self._answer = reading.text
            changed = {} if isinstance(reading.value, ParseProblem) else _changed(version, reading.value)
            if not changed:
                return [self._proposal(version)]
            self._child.answer({"files": changed})
        return []

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Tell GEPA how its version did, case by case."""
        if proposal.origin == BASELINE_ORIGIN:
            self._baseline = result
        elif self._child is not None and self._baseline is not None:
            question, self._unanswered = self._unanswered, ""
            self._note(proposal, result)
            if question == "reflect":
                self._child.answer({"files": {}})
                return
            self._measured[proposal.candidate.digest] = result
            self._child.answer({"scores": _scores(self._spec, result, self._baseline)})

    def close(self) -> None:
        """End GEPA's process and all that it started."""
        if self._child is not None:
            self._child.close()

    def _begin(self, child: Child, baseline: EvalResult) -> None:
        """Set GEPA going and answer its evaluation of the first version with the baseline's."""
        files = dict(self._spec.baseline.texts)
        child.answer(
            {
                "files": files,
                "cases": [case.case_id for case in self._spec.cases],
                "seed": derived_seed(self._seed, "gepa"),
            }
        )
        question = child.question()
        if question != {"ask": "evaluate", "files": files}:
            raise InfrastructureError(f"GEPA began with {str(question)[:200]!r}")
        self._measured[self._spec.baseline.digest] = baseline
        scores = _scores(self._spec, baseline, baseline)
        child.answer({"scores": scores if self._spec.has_sources else dict.fromkeys(scores, 0.0)})

    def _reflected(self, version: Candidate, cases: list[str]) -> Reading[Candidate]:
        """Return what the model makes of a version, with a view to some cases."""
        if self._baseline is None or version.digest not in self._measured:
            raise InfrastructureError("GEPA reflects on a version that was never evaluated")
        measured = self._measured[version.digest]
        messages = reflect_messages(self._spec, version, measured, self._baseline, cases, self._attempts)
        return self._model_client.read(messages, candidate_reader(version), "gepa", self._step)

    def _note(self, proposal: Proposal, result: EvalResult) -> None:
        """Keep how this step ended, for the prompts of later ones, unless its result says nothing of it."""
        if rule_of(result.status).reward is not RewardRule.NEUTRAL:
            measured = self._measured[self._parent.digest]
            attempt = Attempt.of(self._parent, measured, proposal.candidate, result, answer=self._answer)
            self._attempts.append(attempt)

    def _proposal(self, version: Candidate) -> Proposal:
        """Turn the outcome of a step into a proposal."""
        if self._reading is None:
            raise InfrastructureError("GEPA evaluates a version that no reflection gave")
        reading, self._reading = self._reading, None
        origin = {"kind": "gepa", "step": self._step, "calls": [*reading.calls]}
        self._step += 1
        if isinstance(reading.value, ParseProblem):
            return UnusableProposal(version, {**origin, "answer": reading.text}, str(reading.value))
        return Proposal(version, origin)


def reflect_messages(
    spec: OpSpec,
    version: Candidate,
    measured: EvalResult,
    baseline: EvalResult,
    cases: list[str],
    attempts: Sequence[Attempt] = (),
) -> list[Message]:
    """Return the prompt of a reflection: a version, how it was measured, and the cases that it is about.

    Args:
        spec: operator.
        version: candidate that is to be improved.
        measured: its result.
        baseline: result of the operator's own sources.
        cases: ids of the cases that the reflection is about.
        attempts: what was attempted before, the earliest first.
    """
    few, alone = len(cases) < len(spec.cases), len(spec.cases) == 1
    user = render(
        "gepa",
        package="baselines",
        **case_fields(spec),
        **task_fields(spec, measured),
        yardstick=yardstick(spec),
        baseline_us=f"{baseline.latency_us or 0.0:.2f}",
        measurement=describe_result(measured),
        sources=render_sources(version),
        versions="" if alone else _SIDE_BY_SIDE,
        minibatch=f" on the case{'s' * (len(cases) > 1)} {', '.join(cases)}" if few else "",
        rule=_KEPT_ALONE if alone else _KEPT.format(these="these" if few else "all of them"),
        attempts=describe_attempts(attempts),
    )
    return [system_message(spec, version, measured), Message("user", user)]


def _changed(version: Candidate, rewritten: Candidate) -> dict[str, str]:
    before = version.texts
    return {path: text for path, text in rewritten.texts.items() if text != before[path]}


def _scores(spec: OpSpec, result: EvalResult, baseline: EvalResult) -> dict[str, float]:
    """Return the speedup of each case over the baseline's; that of the operator for cases without latency."""
    own = {case.case_id: case.latency_us for case in baseline.cases}
    now = {case.case_id: case.latency_us for case in result.cases}
    overall = speedup(baseline.latency_us, result.latency_us) or 0.0
    return {
        case.case_id: overall and (speedup(own.get(case.case_id), now.get(case.case_id)) or overall)
        for case in spec.cases
    }
