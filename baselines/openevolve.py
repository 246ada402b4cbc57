"""OpenEvolve: an evolution of the complete operator, by the package of that name, under our accounting.

OpenEvolve (https://pypi.org/project/openevolve) keeps programs on islands in MAP-Elites grids, shows a model
one of them with its measurement beside some good and some different ones, and takes SEARCH/REPLACE edits.
It runs in a process of its own and comes back for two things: completions, which our model gives, and
evaluations, which become proposals. A budget of N is N iterations of OpenEvolve: an answer that gives no
program, or one that changes text outside of the evolve blocks, is spent as any unusable answer is. The
operator's own sources are the initial program; their evaluation is the baseline's and costs nothing.

Fitness (``combined_score``) is the speedup over the baseline, 0 for programs that fail. The grid has two
features: ``complexity``, the length of the text (OpenEvolve's own), and ``vector_busy``, the mean over
the cases of the share of time in which the vector pipe works (0 for programs that fail).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from ascend_gym.core.best import speedup
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.protocols import Message, Proposal
from ascend_gym.core.records import EvalResult, OpSpec
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.prompts import chip_of, operator_fields, system_message
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import Answer, ModelClient
from ascend_gym.search.outcome import BASELINE_ORIGIN, UnusableProposal
from ascend_gym.search.seeds import derived_seed
from baselines.openevolve_program import ProgramText
from baselines.package_link import Child, require_package

FEATURES = ("complexity", "vector_busy")

_SUPPORTED = "0.4.0"
_OF_DATABASE = (
    "num_islands",
    "population_size",
    "archive_size",
    "elite_selection_ratio",
    "exploration_ratio",
    "exploitation_ratio",
    "feature_bins",
    "migration_interval",
    "migration_rate",
)
_TEMPLATES = ("diff_user", "previous_attempt", "top_program", "inspiration_program")
_FEEDBACK_CHARACTERS = 16_000  # OpenEvolve shows 20,480 and moves what is longer than 32,768 to files
_EVALUATIONS_PER_ISLAND = 10
_LENGTH_ALLOWANCE = 10_000  # characters; OpenEvolve's own limit for a whole program


@dataclass(frozen=True)
class Evolution:
    """OpenEvolve's settings, with its names and its defaults; the last one is ours.

    Attributes:
        max_iterations: iterations at most; the budget usually ends the run before.
        num_islands: populations that evolve apart.
        population_size: programs kept, over all islands.
        archive_size: elite programs kept.
        elite_selection_ratio: share of the inspirations that are an island's best.
        exploration_ratio: probability that a parent is any program of its island.
        exploitation_ratio: probability that a parent is an elite program; else it is drawn by fitness.
        feature_bins: cells of the grid along each feature.
        migration_interval: generations of an island between migrations.
        migration_rate: share of an island's programs that migrate, the best ones.
        num_top_programs: best programs shown in a prompt.
        num_diverse_programs: other programs shown in a prompt, and again as many as inspirations.
        max_prompt_characters: fewer programs are shown when those of the initial program's length would take
            more than this; the current one always is. A full prompt holds 8 programs, and half of the
            operators of cann-ops have more than 33,000 characters (measured).
    """

    max_iterations: int = 10_000
    num_islands: int = 5
    population_size: int = 1000
    archive_size: int = 100
    elite_selection_ratio: float = 0.1
    exploration_ratio: float = 0.2
    exploitation_ratio: float = 0.7
    feature_bins: int = 10
    migration_interval: int = 50
    migration_rate: float = 0.1
    num_top_programs: int = 3
    num_diverse_programs: int = 2
    max_prompt_characters: int = 200_000

    @classmethod
    def within(cls, budget: int) -> Evolution:
        """Return settings for so many evaluations: an island for every ten, at most OpenEvolve's five.

        The first prompt of each island shows the initial program alone: with five islands and a budget of 20,
        a quarter of the answers would be to one prompt.
        """
        return cls(num_islands=max(1, min(cls.num_islands, budget // _EVALUATIONS_PER_ISLAND)))

    def __post_init__(self) -> None:
        """Refuse settings that OpenEvolve would stumble over."""
        counts = (self.max_iterations, self.num_islands, self.population_size, self.archive_size)
        if min(*counts, self.feature_bins, self.migration_interval) < 1:
            raise MisuseError(f"expected counts of at least 1, got {self}")
        if min(self.num_top_programs, self.num_diverse_programs) < 0:
            raise MisuseError(f"expected numbers of programs to show, got {self}")

    def shown_programs(self, program_characters: int) -> dict[str, int]:
        """Return how many programs of a length to show beside the current one, by OpenEvolve's names."""
        room = max(0, self.max_prompt_characters // program_characters - 1)
        top = min(self.num_top_programs, room)
        return {
            "num_top_programs": top,
            "num_diverse_programs": min(self.num_diverse_programs, (room - top) // 2),
        }


class OpenEvolve:
    """Runs OpenEvolve. A ``Strategy`` for ``ascend_gym.search.driver.run_search``; one proposal at a time."""

    def __init__(
        self, spec: OpSpec, model_client: ModelClient, *, seed: int, evolution: Evolution | None = None
    ) -> None:
        """Prepare an evolution of ``spec``; nothing is started yet.

        Args:
            spec: the operator.
            model_client: asks the model.
            seed: seed of the run.
            evolution: OpenEvolve's settings; its own defaults if ``None``.

        Raises:
            MisuseError: the package is not installed, or the sources hold evolve block markers.
        """
        require_package("openevolve", "OpenEvolve", _SUPPORTED)
        self._spec, self._model_client, self._seed = spec, model_client, seed
        self._evolution = evolution or Evolution()
        self._program = ProgramText(spec.baseline)
        self._baseline: EvalResult | None = None
        self._child: Child | None = None
        self._iteration = 0
        self._answer: Answer | None = None  # of this iteration
        self._waiting = False

    def propose(self, limit: int) -> list[Proposal]:
        """Return the program of the next iteration; none while a result is awaited.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover another answer.
            InfrastructureError: OpenEvolve broke down.
        """
        if self._baseline is None or self._waiting or limit < 1:
            return []
        if self._child is None:
            command = own_python_command("baselines.openevolve_start")
            self._child = Child(command, "OpenEvolve", ENABLE_ARTIFACTS="true")
            self._begin(self._child, self._baseline)
        while (question := self._child.question()) is not None:
            if question["ask"] == "complete":
                self._child.answer({"text": self._completion(question["messages"])})
            else:
                self._waiting = True
                return [self._proposal(question)]
        return []

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Tell OpenEvolve how its program did."""
        if proposal.origin == BASELINE_ORIGIN:
            self._baseline = result
        elif self._child is not None and self._baseline is not None:
            self._waiting = False
            self._child.answer(_verdict(result, self._baseline))

    def close(self) -> None:
        """End OpenEvolve's process and all that it started."""
        if self._child is not None:
            self._child.close()

    def _begin(self, child: Child, baseline: EvalResult) -> None:
        """Set OpenEvolve going and answer its evaluation of the initial program with the baseline's."""
        child.answer(self._order(baseline))
        question = child.question()
        if question != {"ask": "evaluate", "program": self._program.initial}:
            raise InfrastructureError(f"OpenEvolve began with {str(question)[:200]!r}")
        child.answer(_verdict(baseline, baseline, written=self._spec.has_sources))

    def _order(self, baseline: EvalResult) -> dict[str, Any]:
        settings = asdict(self._evolution)
        return {
            "program": self._program.initial,
            "system_message": _system_message(self._spec, baseline),
            "templates": {name: _template(name) for name in _TEMPLATES},
            "seed": derived_seed(self._seed, "openevolve"),
            "max_iterations": self._evolution.max_iterations,
            "max_code_length": 2 * len(self._program.initial) + _LENGTH_ALLOWANCE,
            "prompt": self._evolution.shown_programs(len(self._program.initial)),
            "database": {name: settings[name] for name in _OF_DATABASE} | {"feature_dimensions": FEATURES},
        }

    def _completion(self, messages: list[tuple[str, str]]) -> str:
        self._answer = self._model_client.ask(
            [Message(role, content) for role, content in messages], "openevolve", self._iteration
        )
        return self._answer.text

    def _proposal(self, question: Mapping[str, Any]) -> Proposal:
        """Turn the outcome of an iteration into a proposal."""
        if self._answer is None:
            raise InfrastructureError(f"OpenEvolve failed before it asked: {question.get('problem')}")
        answer, self._answer = self._answer, None
        origin = {"kind": "openevolve", "iteration": self._iteration, "calls": [answer.call]}
        self._iteration += 1
        problem = question.get("problem")
        candidate = problem or self._program.candidate(question["program"])
        if isinstance(candidate, str):
            return UnusableProposal(self._spec.baseline, {**origin, "answer": answer.text}, candidate)
        return Proposal(candidate, origin)


def _verdict(result: EvalResult, baseline: EvalResult, *, written: bool = True) -> dict[str, Any]:
    """Return the metrics and the feedback by which OpenEvolve goes on; what is not written has fitness 0."""
    fitness = (speedup(baseline.latency_us, result.latency_us) if written else None) or 0.0
    busy = (result.mean_profile or {}).get("aiv_vec_ratio", 0.0) if fitness else 0.0
    return {
        "metrics": {"combined_score": fitness, "vector_busy": busy},
        "feedback": describe_result(result)[:_FEEDBACK_CHARACTERS],
    }


def _system_message(spec: OpSpec, baseline: EvalResult) -> str:
    task = render(
        "openevolve/task",
        package="baselines",
        **operator_fields(spec),
        category=spec.category,
        description=spec.description,
        chip=chip_of(baseline),
        over="the operator's own sources" if spec.has_sources else "the framework's calls that compute it",
    )
    return f"{system_message(spec, spec.baseline, baseline, edits=False).content}\n{task}"


def _template(name: str) -> str:
    """Return a template that stands in for OpenEvolve's of that name, and has its ``{fields}``."""
    return (files("baselines") / "prompts" / "openevolve" / f"{name}.md").read_text(encoding="utf-8")
