"""Searches killed with SIGKILL again and again, and resumed: is the journal that of the unbroken run?

For each method and operator one run is left alone; a second is killed each time its journal, or its record
of a model's answers, has grown past the next of several random marks, and resumed. Prints a line per pair and
one JSON document; exit status 1 when journal or spending differ, or a run never was killed.

    python benchmarks/reliability/resume_chaos.py --methods best-of-n greedy-rules --operators add gelu
        --kills 5 [--own-daemons] [-- OPTIONS OF ascend-gym optimize]

All runs share a daemon that is not killed, or with ``--own-daemons`` each has one of its own, which is left
behind when its run is killed. A model at ``$OPENAI_BASE_URL`` is asked as ``-- --model NAME`` says.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ascend_gym.cli.models import ANSWERS_NAME
from ascend_gym.client.local_daemon import DaemonOptions, LocalDaemon
from ascend_gym.core.digest import digest_of
from ascend_gym.core.own_python import own_python_command
from ascend_gym.search.journal import JOURNAL_NAME

GLANCE_S = 0.01
SUMMARY_NAME = "summary.json"


@dataclass(frozen=True)
class Outcome:
    """What came of one method on one operator."""

    method: str
    operator: str
    kills: int
    same_journal: bool
    same_spending: bool
    evaluations: int
    budget: int
    builds: int
    tokens: int
    stop_reason: str

    @property
    def good(self) -> bool:
        """Whether it was killed, and its journal and what it spent agree with those of the unbroken run."""
        return self.kills > 0 and self.same_journal and self.same_spending


def main() -> int:
    """Run all pairs, print, and return the exit status."""
    arguments = _parse()
    daemon = None if arguments.own_daemons else LocalDaemon(DaemonOptions())
    try:
        outcomes = [
            _tried(method, operator, arguments, daemon.address if daemon else None)
            for operator in arguments.operators
            for method in arguments.methods
        ]
    finally:
        if daemon:
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
    parser.add_argument("--own-daemons", action="store_true", help="each run starts a daemon of its own")
    parser.add_argument("options", nargs="*", help="of ascend-gym optimize, behind --")
    return parser.parse_args()


def _tried(method: str, operator: str, arguments: argparse.Namespace, address: str | None) -> Outcome:
    common = ["--json"] if address is None else ["--daemon", address, "--json"]
    start = ["optimize", operator, "--method", method, "--budget", str(arguments.budget), *common]
    start += ["--seed", str(arguments.seed), *arguments.options]
    rng = random.Random(int(digest_of("chaos", method, operator, arguments.seed)[:16], 16))
    with tempfile.TemporaryDirectory() as folder:
        unbroken, broken = Path(folder, "unbroken"), Path(folder, "broken")
        expected = json.loads(_command([*start, "--out", str(unbroken)]).communicate()[0])
        end = _length(unbroken) - _last_records_bytes(unbroken)
        kills = 0
        command = [*start, "--out", str(broken)]
        for left in range(arguments.kills, 0, -1):
            now = _length(broken)
            mark = now + rng.randrange(max(1, (end - now) // left))
            kills += _killed_beyond(_command(command), broken, mark)
            command = ["resume", str(broken), *common]
        (broken / SUMMARY_NAME).unlink(missing_ok=True)
        summary = json.loads(_command(command).communicate()[0])
        same = (broken / JOURNAL_NAME).read_bytes() == (unbroken / JOURNAL_NAME).read_bytes()
    outcome = Outcome(
        *(method, operator, kills, same, _spending(summary) == _spending(expected)),
        *(summary["evaluations"], summary["budget"], summary["spent"]["builds"], summary["spent"]["tokens"]),
        summary["stop_reason"],
    )
    print(f"{'ok' if outcome.good else 'FAILED':7}{operator:24}{method:20}{kills} kills", file=sys.stderr)
    return outcome


def _spending(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what a summary says of spending, but for the time on the device: that is measured anew."""
    return {
        **{meter: spent for meter, spent in summary["spent"].items() if meter != "device_seconds"},
        **{name: summary[name] for name in ("evaluations", "budget", "stop_reason", "best_digest")},
    }


def _length(folder: Path) -> int:
    """Return how long the journal of a run and its record of answers are together, in bytes."""
    files = (folder / name for name in (JOURNAL_NAME, ANSWERS_NAME))
    return sum(file.stat().st_size for file in files if file.exists())


def _last_records_bytes(folder: Path) -> int:
    """Return how long the last two proposals, their results and the end are, which may be written at once."""
    records = (folder / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    return sum(len(each) for each in records[-5:])


def _command(arguments: list[str]) -> subprocess.Popen[bytes]:
    command = [*own_python_command("ascend_gym.cli"), *arguments]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=quiet, stderr=quiet)


def _killed_beyond(process: subprocess.Popen[bytes], folder: Path, mark: int) -> bool:
    """Kill ``process`` once it has written more than ``mark`` bytes of records; say whether it still ran.

    It is not over before it is looked at: its summary goes into a fifo that nobody reads.
    """
    summary = folder / SUMMARY_NAME
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            os.mkfifo(summary)
        if _length(folder) > mark:
            process.kill()
        try:
            process.wait(GLANCE_S)
        except subprocess.TimeoutExpired:
            continue
    process.communicate()
    return process.returncode < 0


if __name__ == "__main__":
    sys.exit(main())
