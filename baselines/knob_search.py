"""Knob search: a (mu + lambda) evolutionary search over the choices that rewrite rules expose; no model.

The evolution is NSGA-II of Optuna with one objective, latency: the best POPULATION of parents and children
together become the next parents, children come from uniform crossover and mutation. The first generation is
the baseline and single knobs turned at random, because many knobs turned at once hardly ever build.

A generation is proposed as a whole and awaited as a whole: proposals depend on seed and results alone.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import NSGAIISampler
from optuna.trial import TrialState

from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.rewrites.knobs import Knob, knobs_of, turned
from ascend_gym.search.outcome import BASELINE_ORIGIN
from ascend_gym.search.seeds import derived_seed

POPULATION = 4  # mu and lambda: ten generations of 4 fit the usual budget of 40
MUTATIONS_PER_CHILD = 2.0
MAX_ASKS = 200  # in a row that give known candidates, before the search counts as finished
FAILED_US = 1e12  # objective of a candidate that failed: slower than any that did not

optuna.logging.set_verbosity(optuna.logging.WARNING)


class KnobSearch:
    """Evolves knob positions. A ``Strategy``."""

    def __init__(self, spec: OpSpec, *, seed: int) -> None:
        """Turn the knobs of ``spec``; ``seed`` is that of the run."""
        self._baseline = spec.baseline
        self._knobs = knobs_of(spec.baseline)
        self._space: dict[str, BaseDistribution] = {
            knob.name: CategoricalDistribution(range(knob.positions)) for knob in self._knobs
        }
        sampler = NSGAIISampler(
            population_size=POPULATION,
            mutation_prob=min(1.0, MUTATIONS_PER_CHILD / max(1, len(self._knobs))),
            seed=derived_seed(seed, "knob-search"),
        )
        self._study = optuna.create_study(sampler=sampler)
        self._rng = random.Random(derived_seed(seed, "knob-search", "first generation"))
        self._trials: dict[str, optuna.Trial] = {}  # by candidate, of the generation that is awaited
        self._ready: list[Proposal] = []
        self._known = {spec.baseline.digest}
        self._generation = -1

    def propose(self, limit: int) -> list[Proposal]:
        """Return candidates of the present generation; none while results of it are awaited or at the end."""
        if not self._ready and not self._trials and self._generation >= 0:
            self._breed()
        taken, self._ready = self._ready[:limit], self._ready[limit:]
        return taken

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Tell the evolution how a candidate did; infrastructure errors say nothing about it."""
        if proposal.origin == BASELINE_ORIGIN:
            self._begin(result)
            return
        trial = self._trials.pop(proposal.candidate.digest)
        if rule_of(result.status).reward is RewardRule.NEUTRAL:
            self._study.tell(trial, state=TrialState.FAIL)
        else:
            self._study.tell(trial, result.latency_us or FAILED_US)

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self, result: EvalResult) -> None:
        """Make the baseline the first of the first generation."""
        self._generation = 0
        self._study.enqueue_trial(dict.fromkeys(self._space, 0))
        self._study.tell(self._study.ask(self._space), result.latency_us or FAILED_US)

    def _breed(self) -> None:
        """Ask for children until the generation is full of unknown candidates or nothing unknown comes."""
        wanted = POPULATION if self._generation else POPULATION - 1
        asks_left = MAX_ASKS if self._knobs else 0
        while len(self._ready) < wanted and asks_left:
            asks_left -= 1
            if self._generation == 0:
                self._study.enqueue_trial(self._one_turned())
            trial = self._study.ask(self._space)
            candidate = turned(self._baseline, self._knobs, trial.params)
            if candidate.digest in self._known:
                self._study.tell(trial, state=TrialState.FAIL)
                continue
            asks_left = MAX_ASKS
            self._known.add(candidate.digest)
            self._trials[candidate.digest] = trial
            self._ready.append(Proposal(candidate, self._origin(trial)))
        self._generation += 1

    def _one_turned(self) -> dict[str, int]:
        """Return all knobs at 0 but one; the rule is picked first, so that no rule counts by its places."""
        by_rule: dict[str, list[Knob]] = defaultdict(list)
        for knob in self._knobs:
            by_rule[knob.rule].append(knob)
        knobs = list(by_rule.values())[int(self._rng.random() * len(by_rule))]
        knob = knobs[int(self._rng.random() * len(knobs))]
        position = 1 + int(self._rng.random() * len(knob.site.choices))
        return {**dict.fromkeys(self._space, 0), knob.name: position}

    def _origin(self, trial: optuna.Trial) -> Mapping[str, object]:
        knobs = {
            knob.name: knob.site.choices[trial.params[knob.name] - 1].label
            for knob in self._knobs
            if trial.params[knob.name]
        }
        return {"kind": "knobs", "generation": self._generation, "knobs": knobs}
