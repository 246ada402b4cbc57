"""Stage I, evolution-guided program search (version 1, section 3.3): a model mutates the tiling function T.

Each individual is a T. Offspring that do not compile, fail or compute something else are discarded at once
(zero tolerance, equation 3); the fitness of the others is 1 / L(T, K). The fastest survivor of an island is
the parent of its next generation (equation 2).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from agents.ascend_optimizer.incumbent import (
    Evaluations,
    Incumbent,
    Memory,
    evaluate,
)
from agents.ascend_optimizer.markers import has_blocks, same_outside_blocks, unmarked
from agents.ascend_optimizer.settings import AgentSettings, Refinement
from agents.ascend_optimizer.template import PACKAGE, synthesize_template, whole_function_marked
from ascend_gym.core.cpp_text import without_comments
from ascend_gym.core.protocols import Ending, Message, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec, Sources
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind, candidate_from_answer
from ascend_gym.rewrites.evolve_blocks import END, START
from ascend_gym.search.llm.attempts import applied_diff, diff_block
from ascend_gym.search.llm.measurement import compared, describe_result
from ascend_gym.search.llm.prompts import cases_text, render_sources, system_message
from ascend_gym.search.llm.sheets import Scope
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import ModelClient

MUTATIONS = {
    "parameter": "fine-tune parameters: change numbers such as tile length, number of cores or share of UB",
    "logic": "rewrite logic: change how a value is computed, such as the tiling key, the alignment, the "
    "split of the work over the cores or the treatment of tails",
}
"""The two dimensions of mutation (version 1, section 3.3), tried in turn on each island."""


_READS_TILING = re.compile(r"\bGET_TILING_DATA\w*\b|\bTILING_KEY_IS\b|\breinterpret_cast<[^>]*[Tt]iling")


def reads_tiling_data(candidate: Candidate) -> bool:
    """Say whether a kernel reads tiling data or tells tiling keys apart: else T decides its blocks alone."""
    return any(_READS_TILING.search(without_comments(file.text)) for file in candidate.kernel.files)


class TilingSearch:
    """Searches T under a fixed K. What was attempted is remembered from one pass to the next."""

    def __init__(
        self,
        spec: OpSpec,
        *,
        online: ModelClient,
        offline: ModelClient,
        settings: AgentSettings,
        memory: Memory,
    ) -> None:
        """Search ``spec``; ``offline`` synthesises the template, ``online`` mutates, ``memory`` is shared."""
        self._spec, self._online, self._offline, self._settings = spec, online, offline, settings
        self._memory = memory
        self._islands: list[list[Incumbent]] = []
        self._template_made = False
        self._untold: list[Mapping[str, Any]] = []  # calls that no proposal has carried into the journal yet
        self._exhausted: Sources | None = None  # the T of which the model said last that it knows no more

    def is_exhausted(self, incumbent: Incumbent) -> bool:
        """Say whether the last pass ended because the model proposed no change of this T."""
        return self._exhausted == unmarked(incumbent.candidate).host

    def search(self, incumbent: Incumbent, round_: int) -> Evaluations:
        """Run Stage I of one round: up to U steps under the incumbent's K; return the best (T, K).

        The pass ends early where the model proposes no change, and after ``patience`` steps in vain.
        Survivors live on from round to round while K stays the same. Under another K they begin with the
        incumbent alone: fitness under one K says nothing of it under another.
        """
        spent = in_vain = 0
        self._exhausted = None
        if not self._template_made and self._settings.refinement is Refinement.PAPER:
            template = synthesize_template(self._spec, incumbent, self._offline, self._untold)
            incumbent, spent = yield from template
            self._template_made = True
        if not has_blocks(incumbent.candidate):  # a rewrite of K left them out: they are comments
            marked = whole_function_marked(unmarked(incumbent.candidate))
            incumbent = Incumbent(marked, incumbent.result)
        islands = self._islands = self._survivors_under(incumbent)
        for step in range(spent, self._settings.steps_in(round_, self._settings.tiling_steps)):
            survivors = islands[step % len(islands)]
            fastest_us = min(island[0].latency_us for island in islands)
            offspring = yield from self._tiling_search_step(survivors, round_, step)
            if offspring is not None:
                survivors.append(offspring)
                self._select(survivors)
            gained = offspring is not None and offspring.latency_us < fastest_us
            in_vain = 0 if gained else in_vain + 1
            if in_vain == self._settings.patience or self._exhausted is not None:
                break
            if (step + 1) % self._settings.migrate_every == 0:
                self._migrate(islands)
        return min((island[0] for island in islands), key=lambda each: each.latency_us)

    def _survivors_under(self, incumbent: Incumbent) -> list[list[Incumbent]]:
        """Return the populations of the last round, with the incumbent, if they were measured under its K."""
        kernel = incumbent.candidate.kernel
        alive = bool(self._islands) and all(each.candidate.kernel == kernel for each in self._islands[0])
        islands = self._islands if alive else [[] for _ in range(self._settings.islands)]
        for island in islands:
            if all(each.candidate != incumbent.candidate for each in island):
                island.append(incumbent)
                self._select(island)
        return islands

    def _tiling_search_step(
        self, survivors: Sequence[Incumbent], round_: int, step: int
    ) -> Generator[Proposal, EvalResult, Incumbent | None]:
        """TilingSearchStep of Algorithm 1: mutate the fastest survivor; return the offspring if valid."""
        parent = survivors[0]
        mutation = list(MUTATIONS)[step // self._settings.islands % len(MUTATIONS)]
        place = self._settings.place_in(round_, step, self._settings.tiling_steps)
        attempts = self._memory.describe()
        messages = mutation_messages(self._spec, survivors, MUTATIONS[mutation], attempts, place)
        reading = self._online.read(
            messages,
            lambda answer: offspring_from_answer(answer.text, parent.candidate, ending=answer.ending),
            *("mutate-tiling", round_, step),
        )
        offspring = reading.value
        origin = {"kind": "mutate-tiling", "stage": "tiling", "round": round_, "step": step}
        origin |= {"mutation": mutation, "calls": [*self._untold, *reading.calls]}
        self._untold.clear()
        proposal, result = yield from evaluate(offspring, parent, origin, reading.text)
        self._memory.note(parent, proposal, result, "tiling", reading.text)
        if isinstance(offspring, ParseProblem):
            if offspring.kind is ProblemKind.NO_FILES:
                self._exhausted = unmarked(parent.candidate).host
            return None
        if result.latency_us is None:
            return None
        return Incumbent(offspring, result)

    def _select(self, survivors: list[Incumbent]) -> None:
        """Keep the fastest; of equally fast ones the earlier."""
        survivors.sort(key=lambda each: each.latency_us)
        del survivors[self._settings.population :]

    def _migrate(self, islands: list[list[Incumbent]]) -> None:
        """Let the fastest of all enter every island that does not have it."""
        best = min((island[0] for island in islands), key=lambda each: each.latency_us)
        for island in islands:
            if best not in island:
                island.append(best)
                self._select(island)


def offspring_from_answer(
    answer: str, parent: Candidate, *, ending: Ending = Ending.COMPLETE
) -> Candidate | ParseProblem:
    """Return the mutated T with the parent's K, or what is wrong with the answer."""
    offspring = candidate_from_answer(answer, parent, ending=ending)
    if isinstance(offspring, ParseProblem) or same_outside_blocks(parent, offspring):
        return offspring
    expected = f"expected changes between {START!r} and {END!r} alone, with the markers left in place"
    return ParseProblem(ProblemKind.FORBIDDEN_EDIT, expected)


def mutation_messages(
    spec: OpSpec, survivors: Sequence[Incumbent], mutation: str, attempts: str, place: str
) -> list[Message]:
    """Return the prompt of a mutation: the parent, other survivors, history of performance, place."""
    parent = survivors[0]
    user = render(
        "mutate_tiling",
        package=PACKAGE,
        op_type=spec.op_type,
        op_id=spec.op_id,
        cases=cases_text(spec),
        measurement=describe_result(parent.result),
        survivors="\n".join(_survivor(each, parent) for each in survivors[1:]) or "None yet.",
        attempts=attempts,
        place=place,
        mutation=mutation,
        start=START,
        end=END,
        sources=render_sources(parent.candidate),
    )
    return [system_message(spec, parent.candidate, parent.result, scope=Scope.TILING), Message("user", user)]


def _survivor(survivor: Incumbent, parent: Incumbent) -> str:
    diff = diff_block(applied_diff(parent.candidate, survivor.candidate))
    cases = compared(survivor.result, parent.result)
    return f"### {survivor.latency_us:.2f} us, with respect to the parent\n- {cases}\n{diff}"
