"""A run of many jobs on a daemon whose processes are killed with SIGKILL again and again.

Victims are drawn at random: a worker, a build process, the broker (started again at once), or the client
(whose successor has the same name and submits the same ids). At the end each job must have been answered with
the result of an undisturbed run, and charged once. Prints one JSON document; exit status 1 when something
differs.

    python benchmarks/reliability/service_chaos.py --jobs 500 --kills 200 --workers 4
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from ascend_gym.core.own_python import own_python_command
from npu_daemon.broker.journal import JobJournal
from npu_daemon.settings import DaemonSettings

ROOT = Path(__file__).resolve().parents[2]
BACKEND = "service_backend:BuildingBackend"
PAUSE_S = 0.02
VICTIMS = ("worker", "worker", "build", "build", "broker", "client")


@dataclass
class Cluster:
    """One daemon and one client process, each started again when it has been killed."""

    folder: Path
    jobs: int
    workers: int
    kills: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.address = f"ipc://{self.folder}/socket"
        self.settings = DaemonSettings(bind=self.address, cache_dir=self.folder / "cache")
        self.answers = self.folder / "answers.jsonl"
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "benchmarks" / "reliability"), str(ROOT)]),
            "TMPDIR": str(self.folder),
        }
        self.daemon = self.start_daemon()
        self.client = self.start_client()

    def start_daemon(self) -> subprocess.Popen[bytes]:
        """Start the daemon."""
        command = [*own_python_command("npu_daemon.__main__"), "serve", "--bind", self.address]
        options = ["--backend", BACKEND, "--workers", str(self.workers), "--devices", "2"]
        cache = ["--cache-dir", str(self.folder / "cache"), "--reference-folder", str(self.folder)]
        with (self.folder / "daemon.log").open("ab") as log:
            return subprocess.Popen([*command, *options, *cache], env=self.environment, stderr=log)

    def start_client(self) -> subprocess.Popen[bytes]:
        """Start the client, which goes on where the last one was."""
        script = str(ROOT / "benchmarks" / "reliability" / "service_client.py")
        command = [sys.executable, script, self.address, str(self.folder), str(self.jobs)]
        with (self.folder / "client.log").open("ab") as log:
            return subprocess.Popen(command, env=self.environment, stderr=log)

    def kill_one(self, kind: str, randomness: random.Random) -> bool:
        """Kill a process of a kind; return whether there was one."""
        workers = children_of(self.daemon.pid, "worker")
        builds = [pid for worker in workers for pid in descendants_of(worker)]
        victims = {
            "worker": workers,
            "build": builds,
            "broker": [self.daemon.pid],
            "client": [self.client.pid],
        }
        if not victims[kind]:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(randomness.choice(sorted(victims[kind])), signal.SIGKILL)
        self.kills[kind] = self.kills.get(kind, 0) + 1
        if kind == "broker":
            self.daemon.wait()
            self.daemon = self.start_daemon()
        if kind == "client":
            self.client.wait()
            self.client = self.start_client()
        return True

    def answered(self) -> list[dict[str, object]]:
        """Return the answers that clients have written down, each line whole."""
        if not self.answers.exists():
            return []
        lines = self.answers.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def stop(self) -> None:
        """End both processes."""
        for process in (self.client, self.daemon):
            process.terminate()
        for process in (self.client, self.daemon):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


def children_of(pid: int, word: str) -> list[int]:
    """Return the children of a process whose command line has ``word`` in it."""
    found = []
    for child in _children(pid):
        with contextlib.suppress(OSError):
            if word in Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0"):
                found.append(child)
    return found


def descendants_of(pid: int) -> list[int]:
    """Return all processes below a process."""
    children = _children(pid)
    return children + [each for child in children for each in descendants_of(child)]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def run(folder: Path, arguments: argparse.Namespace, kills: int) -> tuple[Cluster, float]:
    """Run all jobs, killing as told; return the cluster, stopped, and how long it took."""
    randomness = random.Random(arguments.seed)
    folder.mkdir()
    cluster = Cluster(folder, arguments.jobs, arguments.workers)
    began_s = time.monotonic()
    done = 0
    next_kill_s = began_s + arguments.spacing_s
    kind = randomness.choice(VICTIMS)
    while cluster.client.poll() is None:
        if done < kills and time.monotonic() >= next_kill_s and cluster.kill_one(kind, randomness):
            done += 1
            next_kill_s = time.monotonic() + randomness.uniform(0, 2 * arguments.spacing_s)
            kind = randomness.choice(VICTIMS)
        time.sleep(PAUSE_S)
        if time.monotonic() - began_s > arguments.limit_s:
            break
    took_s = time.monotonic() - began_s
    cluster.stop()
    return cluster, took_s


def charges_of(cluster: Cluster) -> list[tuple[str, int]]:
    """Return names and charged evaluations on the daemon's record."""
    path = cluster.settings.journal_path
    assert path is not None
    journal = JobJournal(path)
    charges = journal.load().charges
    journal.close()
    return [(saved.name.request_id, saved.charge.evaluations) for saved in charges]


def main() -> int:
    """Run undisturbed, then with kills; compare, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spacing-s", type=float, default=0.5, help="mean time between kills")
    parser.add_argument("--limit-s", type=float, default=3600.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ag-chaos-") as parent:
        calm, calm_s = run(Path(parent, "calm"), arguments, 0)
        chaos, chaos_s = run(Path(parent, "chaos"), arguments, arguments.kills)
        expected = {answer["job"]: answer["result"] for answer in calm.answered()}
        answers = chaos.answered()
        found = {answer["job"]: answer["result"] for answer in answers}
        charges = charges_of(chaos)
    report = {
        "jobs": arguments.jobs,
        "kills": chaos.kills,
        "lost": arguments.jobs - len(found),
        "answered_twice": len(answers) - len(found),
        "different": sum(found.get(job) != result for job, result in expected.items()),
        "charged": sum(count for _, count in charges),
        "charged_twice": len(charges) - len({name for name, _ in charges}),
        "undisturbed_s": calm_s,
        "disturbed_s": chaos_s,
        "load": os.getloadavg(),
    }
    print(json.dumps(report, indent=2))
    good = len(expected) == len(found) == report["charged"] == arguments.jobs
    wrong = ("answered_twice", "different", "charged_twice")
    return 0 if good and not any(report[name] for name in wrong) else 1


if __name__ == "__main__":
    sys.exit(main())
