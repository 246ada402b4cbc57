"""Does what PPO learns on some operators help on others? Train, then search on operators it never saw.

1. ``ascend-gym train`` on ``--train`` operators (at least six), with ``--evaluations`` in all.
2. Every method searches on every ``--unseen`` operator with every seed at ``--budget``, through the driver,
   ledger and journal of ``ascend-gym optimize``: random rules (``random-rewrites``: one to four at random
   from the operator's own sources); the network before training, which climbs by random legal rewrites that
   were not tried yet, that is, what the environment gives without learning; and the trained policy.
3. Mean final speedups, and the difference to random rules with a 95 % bootstrap interval: the operators stay,
   the seeds of each method on each operator are drawn with replacement.

Started again with the same ``--out`` it goes on: training from its last checkpoint, searches from their
journals. Writes ``results.json`` and ``table.md`` into ``--out``. Exit status 1 when the interval of the
trained policy is not above 0.

    python benchmarks/methods/ppo_generalisation.py --out runs/ppo
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ascend_gym.cli.methods import Method, RunSettings
from ascend_gym.cli.options import note, opened_daemons
from ascend_gym.cli.runs import operator_of, run_in_folder
from ascend_gym.cli.train import SETTINGS_NAME
from ascend_gym.client import connect
from ascend_gym.core.own_python import own_python_command
from baselines.ppo_checkpoints import last_checkpoint, read_progress
from baselines.ppo_policy import network, save_policy

TESTS = Path(__file__).parents[2] / "tests" / "operators"
TRAIN = ("add", "exp", "foreach_add", "gather", "muls", "softmax")
TRAIN_FOLDERS = ("power", "vector_motifs")
UNSEEN = ("gelu", "rms_norm")
CHIP = "910B2"
RANDOM, TRAINED = "random-rewrites", "ppo"
RESAMPLES = 10_000
Array = np.ndarray[Any, np.dtype[np.float64]]


def main() -> int:
    """Train, search, compare; return the exit status."""
    arguments = _parse()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with opened_daemons(arguments.daemon and [arguments.daemon], CHIP) as (address, *_):
        if not arguments.without_training:
            _train(arguments, address)
        speedups: dict[str, list[list[float]]] = {}
        for name, settings in _methods(arguments).items():
            speedups[name] = _searched(name, settings, arguments, address)
            over_random = _report(speedups, arguments)
    return 0 if over_random.get(TRAINED, (0.0, 0.0, 0.0))[1] > 0 else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folders = [TESTS / name for name in TRAIN_FOLDERS]
    parser.add_argument("--out", type=Path, required=True, help="folder of everything")
    parser.add_argument("--train", nargs="+", default=list(TRAIN), metavar="OP")
    parser.add_argument("--train-folders", nargs="*", type=Path, default=folders, metavar="DIR")
    parser.add_argument("--unseen", nargs="+", default=list(UNSEEN), metavar="OP")
    parser.add_argument("--evaluations", type=int, default=4000, help="of the training")
    parser.add_argument(
        "--cases", type=int, default=1, help="cases of an operator in training, smallest first"
    )
    parser.add_argument("--training-seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=20, help="of a search, and of an episode")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="of the searches")
    parser.add_argument("--workers", type=int, default=2, help="searches at a time")
    parser.add_argument("--daemon", help="address of a daemon; by default a private one is started")
    parser.add_argument("--without-training", action="store_true", help="search with what there is")
    arguments = parser.parse_args()
    names = {*arguments.train, *(folder.name for folder in arguments.train_folders)}
    if names & set(arguments.unseen):
        parser.error(
            f"{sorted(names & set(arguments.unseen))} would be trained on and are no unseen operators"
        )
    return arguments


def _train(arguments: argparse.Namespace, address: str) -> None:
    """Train in a process of its own, from the last checkpoint if there is one."""
    folder = arguments.out / "training"
    if (folder / SETTINGS_NAME).exists():
        which = ["--resume", str(folder)]
    else:
        which = ["--out", str(folder), "--operators", ",".join(arguments.train)]
        which += [word for one in arguments.train_folders for word in ("--op-dir", str(one))]
        which += ["--budget", str(arguments.budget), "--cases", str(arguments.cases)]
        which += ["--seed", str(arguments.training_seed)]
    command = [*own_python_command("ascend_gym.cli"), "train", "--daemon", address, *which]
    subprocess.run([*command, "--evaluations", str(arguments.evaluations)], check=True)


def _methods(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the settings of the methods by their name in the tables."""
    untrained = arguments.out / "untrained"
    untrained.mkdir(exist_ok=True)
    save_policy(untrained, "rules", network("rules", arguments.training_seed).state_dict())
    trained = last_checkpoint(arguments.out / "training")
    methods: dict[str, dict[str, Any]] = {RANDOM: {"method": Method.RANDOM_REWRITES}}
    if trained is not None:
        methods[TRAINED] = {"method": Method.PPO, "checkpoint": str(trained)}
    return {**methods, "untrained": {"method": Method.PPO, "checkpoint": str(untrained)}}


def _searched(
    name: str, settings: dict[str, Any], arguments: argparse.Namespace, address: str
) -> list[list[float]]:
    """Return the final speedups of a method, of shape (operators, seeds)."""

    def speedup(operator: str, seed: int) -> float:
        chosen = RunSettings(operator=operator, seed=seed, budget=arguments.budget, **settings)
        of_policy = Path(settings.get("checkpoint", name)).name  # each checkpoint has searches of its own
        folder = arguments.out / "searches" / of_policy / operator / f"seed{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        evaluator = connect([address])
        try:
            outcome = run_in_folder(nullcontext(evaluator), folder, operator_of(chosen), chosen)
        finally:
            evaluator.close()
        note(f"{name} on {operator}, seed {seed}: {outcome.speedup}, {outcome.stop_reason.value}")
        if outcome.speedup is None:
            raise SystemExit(f"{name} on {operator}: {outcome.message}")
        return outcome.speedup

    with ThreadPoolExecutor(arguments.workers) as pool:
        rows = [
            [pool.submit(speedup, operator, seed) for seed in arguments.seeds]
            for operator in arguments.unseen
        ]
        return [[cell.result() for cell in row] for row in rows]


def difference(ours: Array, theirs: Array) -> tuple[float, float, float]:
    """Return mean(ours) - mean(theirs) and its 95 % percentile bootstrap interval.

    Both are of shape (operators, seeds); the seeds of each row are drawn with replacement, for each apart.
    """
    rng = np.random.default_rng(0)

    def resampled(cells: Array) -> Array:
        drawn = rng.integers(cells.shape[1], size=(RESAMPLES, *cells.shape))
        rows = np.arange(cells.shape[0])[None, :, None]
        means: Array = cells[rows, drawn].mean(axis=(1, 2))
        return means

    low, high = np.percentile(resampled(ours) - resampled(theirs), [2.5, 97.5])
    return float(ours.mean() - theirs.mean()), float(low), float(high)


def _report(
    speedups: dict[str, list[list[float]]], arguments: argparse.Namespace
) -> dict[str, tuple[float, float, float]]:
    """Print and write what is known by now; return the differences to random rules."""
    tables = {name: np.array(rows) for name, rows in speedups.items()}
    control = tables[RANDOM]
    over_random = {name: difference(table, control) for name, table in tables.items()}
    checkpoint = last_checkpoint(arguments.out / "training")
    progress = read_progress(checkpoint) if checkpoint else None
    lines = [
        f"| method | {' | '.join(arguments.unseen)} | mean | minus random-rewrites, 95 % |",
        "|---|" + "---|" * (len(arguments.unseen) + 2),
    ]
    for name, table in tables.items():
        means = " | ".join(f"{row.mean():.3f} ({row.min():.3f} - {row.max():.3f})" for row in table)
        gain, low, high = over_random[name]
        against = "" if name == RANDOM else f"{gain:+.3f} [{low:+.3f}, {high:+.3f}]"
        lines.append(f"| `{name}` | {means} | {table.mean():.3f} | {against} |")
    text = "\n".join(lines) + "\n"
    print(text)
    (arguments.out / "table.md").write_text(text, encoding="utf-8")
    document = {
        "settings": {name: str(value) for name, value in vars(arguments).items()},
        "training_evaluations": progress.evaluations if progress else 0,
        "training_seconds": progress.seconds if progress else 0.0,
        "speedups": speedups,
        "difference_to_random_rewrites": over_random,
    }
    (arguments.out / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return over_random


if __name__ == "__main__":
    sys.exit(main())
