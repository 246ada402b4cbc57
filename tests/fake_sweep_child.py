"""Makes a run of a sweep with scripted kernels and the fake evaluator; its settings say what goes wrong.

``die_once``: a file; without it the process kills itself after its second step, and makes the file.
``note_server``: a file that is told the process from which this one was forked. ``unreachable``: the daemon
cannot be reached. ``refuse``: the run cannot be made. ``vanish``: it ends without a word when it is told to
stop. ``wait``: a fifo that is read after each step, as long as it exists.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path

from conftest import FakeEvaluator
from stored_runs import KERNELS, SPEC, Scripted

from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.search_rules import SearchRules


def tell(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Steps:
    def __init__(self, settings):
        self._settings = settings

    def __call__(self, step):
        tell(
            index=step.index,
            status=step.result.status.value,
            spent_evaluations=step.spent.evaluations,
            baseline_latency_us=100.0,
            best_latency_us=step.best_latency_us,
        )
        marker = self._settings.get("die_once")
        if marker and step.index == 2 and not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        fifo = Path(self._settings.get("wait", "/nowhere"))
        if fifo.exists():
            fifo.read_text()


def end_with_parent(settings):
    while os.read(sys.stdin.fileno(), 1):
        continue
    if settings.get("vanish"):
        os._exit(130)
    os.kill(os.getpid(), signal.SIGINT)


def prepare():
    """Nothing is imported later."""


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--daemon")
    arguments, _ = parser.parse_known_args()
    settings = json.loads((arguments.folder / "run.json").read_text())
    threading.Thread(target=end_with_parent, args=[settings], daemon=True).start()
    if "note_server" in settings:
        Path(settings["note_server"]).write_text(str(os.getppid()))
    if settings.get("refuse"):
        sys.stderr.write("no such method\n")
        raise SystemExit(2)
    if settings.get("unreachable") == arguments.daemon and arguments.daemon:
        tell(ending="infrastructure", message="no daemon answers")
        return
    told = {name: settings[name] for name in ("method", "seed", "budget")}
    try:
        with Journal(arguments.folder) as journal:
            outcome = run_search(
                SPEC,
                Scripted(KERNELS),
                FakeEvaluator(),
                BudgetLedger(Budget(settings["budget"])),
                journal,
                SearchRules(settings={**told, "model": "paid", "price": None}),
                on_event=Steps(settings),
            )
    except KeyboardInterrupt:
        tell(ending="interrupted", message="")
        return
    resumable = outcome.stop_reason.value == "interrupted"
    (arguments.folder / "best.diff").write_text(outcome.best.kernel_text)
    tell(ending="interrupted" if resumable else "finished", message=outcome.message)


if __name__ == "__main__":
    main()
