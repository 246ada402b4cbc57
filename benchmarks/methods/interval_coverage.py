"""What the 95 % intervals of the reports cover, and how often two equal methods are told apart.

Coverage: operators are drawn from a distribution of log speedups whose mean is known, each with an effect
of its own and noise of its seeds; counted is how often ``geometric_mean`` holds the mean, and ``fast_p`` the
share. Samples that give no interval, since all operators are equal, are counted apart, not as covered.
A/A: the same method several times, with other seeds on the same operators; counted is how often any of the
differences has a corrected p value (Holm) of at most 0.05.

The rule of the intervals was chosen on other draws: another generator, distributions without seeds.

    python benchmarks/methods/interval_coverage.py [--draws 4000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ascend_gym.report.metrics import FAST_P, SIGNIFICANT, fast_p, geometric_mean, holm, paired_test

OPERATORS = (3, 6, 8, 12, 20, 50)
EQUAL_OPERATORS = (3, 6, 8, 12)  # where the test is exact
SEEDS = 3
GENERATOR = 20261124
METHODS = 4
_LARGE = 400_000

Array = np.ndarray[Any, np.dtype[np.float64]]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


@dataclass(frozen=True)
class Model:
    """A distribution of log speedups.

    Attributes:
        name: what it is.
        effects: draws the effects of operators.
        noise: standard deviation between seeds, in logarithms.
        floored: whether a run that found nothing better stays at 1, as searches do.
    """

    name: str
    effects: Draw
    noise: float = 0.05
    floored: bool = False

    def draw(self, generator: np.random.Generator, draws: int, operators: int) -> Array:
        """Return speedups of shape (draws, operators, SEEDS)."""
        effects = self.effects(generator, (draws, operators, 1))
        logs = effects + self.noise * generator.normal(size=(draws, operators, SEEDS))
        return np.asarray(np.exp(np.maximum(logs, 0.0) if self.floored else logs), dtype=np.float64)


def _tied(draw: Draw, found: float) -> Draw:
    """Return effects of which a share is exactly none: nothing was found, or both found the same."""
    return lambda generator, shape: draw(generator, shape) * (generator.random(shape) < found)


MODELS = (
    Model("normal", lambda generator, shape: generator.normal(0.3, 0.25, shape)),
    Model("normal, seeds as far apart as operators", lambda g, shape: g.normal(0.3, 0.25, shape), noise=0.25),
    Model("heavy tails (t, 4 degrees)", lambda generator, shape: 0.3 + 0.2 * generator.standard_t(4, shape)),
    Model("skewed (gamma, shape 3)", lambda generator, shape: generator.gamma(3.0, 0.12, shape)),
    Model("skewed, floored at 1", lambda g, shape: g.normal(0.15, 0.25, shape), noise=0.1, floored=True),
    Model(
        "very skewed (exponential)", lambda generator, shape: generator.exponential(0.3, shape), noise=0.02
    ),
    Model(
        "30 % exactly 1, else exponential",
        _tied(lambda generator, shape: generator.exponential(0.3, shape), 0.7),
        noise=0.0,
    ),
    Model(
        "a few very large (log-normal, sigma 1)",
        lambda generator, shape: 0.2 * generator.lognormal(0.0, 1.0, shape),
        noise=0.02,
    ),
    Model(
        "ratio of two methods, 40 % equal",
        _tied(lambda generator, shape: generator.laplace(0.05, 0.15, shape), 0.6),
        noise=0.0,
    ),
)


def coverage(model: Model, operators: int, draws: int) -> dict[str, float]:
    """Return the shares of intervals that hold the true figure, and of samples that give none."""
    generator = np.random.default_rng([GENERATOR, operators, MODELS.index(model)])
    population = model.draw(generator, _LARGE // SEEDS, 1)
    mean, share = float(np.log(population).mean()), float((population > FAST_P[1]).mean())
    held = none = held_share = 0
    for table in model.draw(generator, draws, operators).tolist():
        found, fast = geometric_mean(table), fast_p(table, FAST_P[1])
        if found.low is None or found.high is None:
            none += 1
        else:
            held += np.log(found.low) <= mean <= np.log(found.high)
        held_share += (fast.low or 0.0) <= share <= (1.0 if fast.high is None else fast.high)
    return {"geometric_mean": held / max(draws - none, 1), "fast_p": held_share / draws, "none": none / draws}


def equal_methods(model: Model, operators: int, draws: int) -> float:
    """Return how often a reference and equal methods are told apart (A/A)."""
    generator = np.random.default_rng([GENERATOR, operators, MODELS.index(model), METHODS])
    told_apart = 0
    for _ in range(draws):
        effects = model.effects(generator, (1, operators, 1))
        own = Model(model.name, lambda _, shape, effects=effects: effects, model.noise or 0.05, model.floored)
        reference, *others = (own.draw(generator, 1, operators)[0].tolist() for _ in range(METHODS))
        p_values = holm([paired_test(other, reference).p_value for other in others])
        told_apart += min(p_values) <= SIGNIFICANT
    return told_apart / draws


def _line(name: str, shares: Sequence[float]) -> str:
    return f"| {name} | " + " | ".join(f"{100 * each:.1f}" for each in shares) + " |"


def main() -> int:
    """Simulate, print each row when it is known, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=4000, help="samples of each model and size")
    parser.add_argument("--equal-draws", type=int, default=400, help="trials of equal methods")
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    arguments = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {model.name: {} for model in MODELS}
    print("covered %, by operators | " + " | ".join(map(str, OPERATORS)))
    for model in MODELS:
        found = [coverage(model, operators, arguments.draws) for operators in OPERATORS]
        rows[model.name] = {name: [each[name] for each in found] for name in found[0]}
        for name, shares in rows[model.name].items():
            print(_line(f"{model.name}: {name}", shares), flush=True)
    print("equal methods told apart %, by operators | " + " | ".join(map(str, EQUAL_OPERATORS)))
    for model in MODELS:
        apart = [equal_methods(model, operators, arguments.equal_draws) for operators in EQUAL_OPERATORS]
        rows[model.name]["equal told apart"] = apart
        print(_line(model.name, apart), flush=True)
    if arguments.json is not None:
        document = {"draws": arguments.draws, "equal_draws": arguments.equal_draws, "rows": rows}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
