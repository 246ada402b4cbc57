"""The process that runs GEPA 0.1 (https://pypi.org/project/gepa); see ``package_link``.

GEPA has hooks for all that is needed: an adapter evaluates, and proposes new texts. What the adapter adds is
memory, so that a version is measured when it is proposed and at no other time: GEPA evaluates a version anew
for each set of cases that it looks at.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gepa import optimize
from gepa.core.adapter import EvaluationBatch

from baselines.package_link import Line

_Files = Mapping[str, str]
_MINIBATCH_CASES = 3  # GEPA's default


def main() -> None:
    """Run GEPA as the first message says; the argument is the descriptor of the line."""
    line = Line(int(sys.argv[1]))
    order = line.wait()
    optimize(
        seed_candidate=order["files"],
        trainset=order["cases"],
        adapter=_Operator(line),
        candidate_selection_strategy="pareto",
        module_selector="all",
        reflection_minibatch_size=min(_MINIBATCH_CASES, len(order["cases"])),
        skip_perfect_score=False,  # there is no perfect speedup
        stop_callbacks=lambda _: False,  # the parent ends this process when the budget is spent
        seed=order["seed"],
        raise_on_exception=True,
    )


class _Operator:
    """The operator as GEPA's adapters are: components are files, examples are names of cases."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._scores: dict[tuple[str, ...], Mapping[str, float]] = {}
        self._proposed: tuple[str, ...] | None = None  # to be evaluated even if it is known

    def evaluate(
        self, batch: Sequence[str], candidate: _Files, capture_traces: bool = False
    ) -> EvaluationBatch[str, str]:
        """Return the scores of a version in some cases."""
        version = tuple(candidate.values())
        if version not in self._scores or version == self._proposed:
            self._proposed = None
            self._scores[version] = self._line.ask("evaluate", files=candidate)["scores"]
        scores = [self._scores[version][case] for case in batch]
        trajectories = [*batch] if capture_traces else None
        return EvaluationBatch(outputs=[*batch], scores=scores, trajectories=trajectories)

    def make_reflective_dataset(
        self, candidate: _Files, eval_batch: EvaluationBatch[str, str], components_to_update: Sequence[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return the cases for every file; the parent knows how the version did in them."""
        return {name: [{"case": case} for case in eval_batch.outputs] for name in components_to_update}

    def propose_new_texts(
        self,
        candidate: _Files,
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: Sequence[str],
    ) -> dict[str, str]:
        """Return the files that a reflection changes, none where the answer could not be used."""
        cases = [each["case"] for each in reflective_dataset[components_to_update[0]]]
        changed = dict(self._line.ask("reflect", files=candidate, cases=cases)["files"])
        self._proposed = tuple({**candidate, **changed}.values()) if changed else None
        return changed
