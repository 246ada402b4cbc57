"""One run of a sweep, in a child process of ``ForkServer``; its argument is the run's folder.

Each step and the end are JSON lines on standard output; output of libraries goes to standard error.
The run is interrupted when standard input ends. Exit status 0: the end was reported; 2: the run is invalid.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from ascend_gym.cli.methods import BUILT_IN
from ascend_gym.cli.models import ModelAccess
from ascend_gym.cli.options import EXIT_INTERRUPTED, EXIT_MISUSE, note, opened_evaluator
from ascend_gym.cli.runs import operator_of, read_settings, run_in_folder
from ascend_gym.core.config import default_connect_timeout_s, set_connect_timeout
from ascend_gym.core.errors import InfrastructureError, MisuseError, ModelRefusedError
from ascend_gym.core.interrupts import Interrupts, interruptible, interrupts_held_back
from ascend_gym.report.run_folder import unified_diff, write_candidate
from ascend_gym.search.model_client import TIMEOUT_S
from ascend_gym.search.outcome import RESUMABLE, SearchOutcome, Step, StopReason
from ascend_gym.sweep.jobs import RunEnding
from ascend_gym.sweep.run_folders import own_digests

_PREPARED = (
    *(each.module for each in BUILT_IN.values() if each.writes_sources),
    "agents.ascend_optimizer.embedders",
    "ascend_gym.client",
    "ascend_gym.search.llm.offline",
)
_GRACE_S = 5.0
_CONNECT_TIMEOUT_S = 10.0  # the sweep begins the run again, where there is a daemon
_ENDINGS = {
    StopReason.INFRASTRUCTURE: RunEnding.INFRASTRUCTURE,
    StopReason.MODEL_REFUSED: RunEnding.MODEL_REFUSED,
    StopReason.INTERRUPTED: RunEnding.INTERRUPTED,
    StopReason.METHOD_FAILED: RunEnding.REFUSED,
}


def prepare() -> None:
    """Do the common work of all runs: imports, and reading the sources for provenance."""
    for module in _PREPARED:
        import_module(module)
    own_digests()


def main() -> None:
    """Execute or resume the run, and exit with its status."""
    arguments = _parse()
    if default_connect_timeout_s() is None:
        set_connect_timeout(_CONNECT_TIMEOUT_S)
    stream = _StepStream()
    over = threading.Event()
    with interruptible() as interrupts:
        watcher = threading.Thread(target=_end_with_parent, args=[interrupts, over], daemon=True)
        ending, message = _ending(arguments, stream, watcher)
        with interrupts_held_back():
            stream.write(ending=ending.value, message=message)
            over.set()


def _ending(
    arguments: argparse.Namespace, stream: _StepStream, watcher: threading.Thread
) -> tuple[RunEnding, str]:
    try:
        watcher.start()  # it may interrupt the run at once
        outcome = _run(arguments, stream)
    except ModelRefusedError as error:
        return RunEnding.MODEL_REFUSED, str(error)
    except InfrastructureError as error:
        return RunEnding.INFRASTRUCTURE, str(error)
    except KeyboardInterrupt:
        return RunEnding.INTERRUPTED, "interrupted before it began"
    except MisuseError as error:
        note(str(error))
        raise SystemExit(EXIT_MISUSE) from error
    return _ENDINGS.get(outcome.stop_reason, RunEnding.FINISHED), outcome.message


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--daemon", type=lambda addresses: addresses.split(","))
    parser.add_argument("--in-flight", type=int, default=2)
    parser.add_argument("--base-url")
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--requests-per-minute", type=int)
    parser.add_argument("--tokens-per-minute", type=int)
    parser.add_argument("--shared-rates", action="store_true", help="keep to them with all runs of this host")
    parser.add_argument("--sweep-account", type=Path)
    parser.add_argument("--sweep-tokens", type=int)
    parser.add_argument("--sweep-usd", type=float)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S)
    parser.add_argument("--across-versions", action="store_true")
    parser.add_argument("--command", type=json.loads, help="what the sweep was begun with, a JSON list")
    return parser.parse_args()


def _run(arguments: argparse.Namespace, stream: _StepStream) -> SearchOutcome:
    folder: Path = arguments.folder
    settings = read_settings(folder)
    spec = operator_of(settings)
    outcome = run_in_folder(
        opened_evaluator(arguments.daemon, settings.chip),
        folder,
        spec,
        settings,
        access=ModelAccess.of(vars(arguments)),
        in_flight=arguments.in_flight,
        on_event=stream,
        command=arguments.command,
        across_versions=arguments.across_versions,
    )
    if outcome.stop_reason not in RESUMABLE or outcome.best_result is not None:
        write_candidate(outcome.best, folder / "best")
        (folder / "best.diff").write_text(unified_diff(spec.baseline, outcome.best), "utf-8", newline="")
    return outcome


class _StepStream:
    """Writes each step to the original standard output, which carries nothing else."""

    def __init__(self) -> None:
        self._stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self._baseline_us: float | None = None

    def __call__(self, step: Step) -> None:
        if step.index == 0:
            self._baseline_us = step.result.latency_us
        self.write(
            index=step.index,
            status=step.result.status.value,
            spent_evaluations=step.spent.evaluations,
            baseline_latency_us=self._baseline_us,
            best_latency_us=step.best_latency_us,
        )

    def write(self, **event: Any) -> None:
        """Write one line."""
        self._stream.write(json.dumps(event) + "\n")
        self._stream.flush()


def _end_with_parent(interrupts: Interrupts, over: threading.Event) -> None:
    """Interrupt the run when standard input ends; if it does not stop, kill the process."""
    while os.read(sys.stdin.fileno(), 1):  # not sys.stdin.read(): its lock may be held when Python ends
        continue
    if over.is_set():
        return
    if interrupts.first is None:  # systemd and Slurm interrupt parent and children themselves
        os.kill(os.getpid(), signal.SIGINT)
    if not over.wait(_GRACE_S):
        os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
