"""Searches killed with SIGKILL again and again, and resumed: is the journal that of the unbroken run?

For each method and operator one run is left alone; a second is killed each time its journal has grown past
the next of several random marks, and resumed. Prints a line per pair and one JSON document; exit status 1
when a journal differs or a ledger is not exact.

    python benchmarks/resume_chaos.py --methods best-of-n greedy-rules --operators add gelu --kills 5
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from ascend_gym.client.local_daemon import DaemonOptions, LocalDaemon
from ascend_gym.core.digest import digest_of
from ascend_gym.core.own_python import own_python_command
from ascend_gym.search.journal import JOURNAL_NAME

GLANCE_S = 0.01


@dataclass(frozen=True)
class Outcome:
    """What came of one method on one operator."""

    method: str
    operator: str
    kills: int
    same_journal: bool
    evaluations: int
    budget: int
    stop_reason: str

    @property
    def good(self) -> bool:
        """Whether it was killed and its journal agrees; the resumed ledger is exact: all spent, or done."""
        exact = self.evaluations == self.budget or self.stop_reason == "strategy_finished"
        return self.kills > 0 and self.same_journal and exact and self.evaluations <= self.budget


def main() -> int:
    """Run all pairs, print, and return the exit status."""
    arguments = _parse()
    daemon = LocalDaemon(DaemonOptions())
    try:
        outcomes = [
            _tried(method, operator, arguments, daemon.address)
            for operator in arguments.operators
            for method in arguments.methods
        ]
    finally:
        daemon.close()
    print(json.dumps([{**asdict(outcome), "good": outcome.good} for outcome in outcomes], indent=2))
    return 0 if all(outcome.good for outcome in outcomes) else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", required=True)
    parser.add_argument("--operators", nargs="+", required=True)
    parser.add_argument("--budget", type=int, default=10)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _tried(method: str, operator: str, arguments: argparse.Namespace, address: str) -> Outcome:
    common = ["--daemon", address, "--json"]
    start = ["optimize", operator, "--method", method, "--budget", str(arguments.budget), *common]
    with tempfile.TemporaryDirectory() as folder:
        unbroken, broken = Path(folder, "unbroken"), Path(folder, "broken")
        _command([*start, "--seed", str(arguments.seed), "--out", str(unbroken)]).communicate()
        length = (unbroken / JOURNAL_NAME).stat().st_size
        kills = 0
        command = [*start, "--seed", str(arguments.seed), "--out", str(broken)]
        for mark in _marks(method, operator, length, arguments):
            kills += _killed_at(_command(command), broken / JOURNAL_NAME, mark)
            command = ["resume", str(broken), *common]
        summary = json.loads(_command(command).communicate()[0])
        same = (broken / JOURNAL_NAME).read_bytes() == (unbroken / JOURNAL_NAME).read_bytes()
    outcome = Outcome(
        method, operator, kills, same, summary["evaluations"], summary["budget"], summary["stop_reason"]
    )
    print(f"{'ok' if outcome.good else 'FAILED':7}{operator:14}{method:20}{kills} kills", file=sys.stderr)
    return outcome


def _marks(method: str, operator: str, length: int, arguments: argparse.Namespace) -> list[int]:
    """Return journal lengths at which to kill, in order; the first byte is always one of them."""
    digest = digest_of("chaos", method, operator, arguments.seed)
    rng = random.Random(int(digest[:16], 16))
    return [1, *sorted(rng.randrange(1, length) for _ in range(arguments.kills - 1))]


def _command(arguments: list[str]) -> subprocess.Popen[bytes]:
    command = [*own_python_command("ascend_gym.cli"), *arguments]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=quiet, stderr=quiet)


def _killed_at(process: subprocess.Popen[bytes], journal: Path, mark: int) -> bool:
    """Kill ``process`` once its journal is longer than ``mark``; say whether it still ran then."""
    while process.poll() is None:
        if journal.exists() and journal.stat().st_size > mark:
            process.kill()
        try:
            process.wait(GLANCE_S)
        except subprocess.TimeoutExpired:
            continue
    process.communicate()
    return process.returncode < 0


if __name__ == "__main__":
    sys.exit(main())
