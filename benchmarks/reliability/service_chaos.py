"""A run of many jobs of several tenants on a daemon to which everything happens that happens to hosts.

The daemon has keys and the real simulator; each tenant has a client process, and reaches the daemon through a
connection of its own that can go dead. At random times, drawn from ``--seed``,

- a process is killed with SIGKILL: a worker, one below a worker (sandbox, compiler, candidate), the broker,
  or a client, whose successor has the same name and submits the same ids;
- a file of the cache is truncated, has a bit flipped, is emptied or is removed;
- a worker or the broker is stopped for some seconds;
- the disk (a tmpfs of its own, where this user may mount one) fills for some seconds;
- the end of the write-ahead log of jobs is cut off before a killed broker starts again;
- the connections of a tenant go half-open: nothing comes through, and nobody is told.

At the end each job must have been answered once, with the result of an undisturbed run, and charged at most
once (a cut log may lose charges); no process and no temporary file of the daemon may be left. Clocks are not
changed: the broker's decisions take their time as an argument, and ``tests/broker_machine.py`` lets it jump.
Prints one JSON document; exit status 1 when something differs.

    python benchmarks/reliability/service_chaos.py --jobs 500 --kills 200 --corruptions 50
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascend_gym.core.config import cache_root
from ascend_gym.core.curve_keys import generate_keys
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.private_folder import remove_abandoned_folders
from npu_daemon.broker.journal import JobJournal
from npu_daemon.settings import DaemonSettings

ROOT = Path(__file__).resolve().parents[2]
PAUSE_S = 0.02
KILLED = ("worker", "worker", "below_worker", "below_worker", "broker", "client")
OTHERS = ("stopped_worker", "stopped_broker", "full_disk", "cut_log", "half_open")
DAMAGED_PARTS = ("builds", "builds", "case_data", "case_data", "toolchain")
DISK_MIB = 3072
CHUNK_BYTES = 1 << 16


class Wire:
    """Forwards the connections of one tenant to the daemon; ``hang`` makes those that exist half-open."""

    def __init__(self, port: int) -> None:
        self._port, self._open, self._dead = port, list[socket.socket](), set[socket.socket]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def hang(self) -> None:
        """Let nothing more through the connections that exist, and close none."""
        self._dead |= set(self._open)

    def close(self) -> None:
        """Close everything."""
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._port))
                except OSError:  # the daemon is being started again
                    near.close()
                    continue
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(CHUNK_BYTES):
                if one not in self._dead:
                    other.sendall(data)
        if one not in self._dead:
            with contextlib.suppress(OSError):
                other.shutdown(socket.SHUT_RDWR)


@dataclass
class Cluster:
    """One daemon and a client of each tenant, each started again when it has ended."""

    folder: Path
    arguments: argparse.Namespace
    jobs: int
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.disk = self.folder / "disk"
        self.cache, self.scratch = self.disk / "cache", self.disk / "tmp"
        self.settings = DaemonSettings(bind=f"tcp://127.0.0.1:{port}", cache_dir=self.cache)
        self.disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(self.disk)]
        self.mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        self.scratch.mkdir()
        (self.cache / "toolchain").mkdir(parents=True)
        if (cache_root() / "toolchain").is_dir():  # a cache may be moved
            shutil.copytree(cache_root() / "toolchain", self.cache / "toolchain", dirs_exist_ok=True)
        generate_keys(self.folder, "daemon")
        (self.folder / "allowed").mkdir()
        for number in range(self.arguments.tenants):
            public, _ = generate_keys(self._keys(number), "client")
            shutil.copy(public, self.folder / "allowed" / f"tenant{number}.key")
            shutil.copy(self.folder / "daemon.key", self._keys(number) / "127.0.0.1.key")
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.scratch)}
        self.wires = [Wire(port) for _ in range(self.arguments.tenants)]
        self.daemon = self.start_daemon()
        self.clients = [self.start_client(number) for number in range(self.arguments.tenants)]

    def _keys(self, tenant: int) -> Path:
        return self.folder / f"keys{tenant}"

    def answers(self, tenant: int) -> Path:
        """Return where a tenant writes its answers down."""
        return self.folder / f"answers{tenant}.jsonl"

    def start_daemon(self) -> subprocess.Popen[bytes]:
        """Start the daemon."""
        options = {
            "bind": self.settings.bind,
            "workers": self.arguments.workers,
            "devices": self.arguments.workers,
            "cache-dir": self.cache,
            "secret-key": self.folder / "daemon.key_secret",
            "allowed-clients": self.folder / "allowed",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        with (self.folder / "daemon.log").open("ab") as log:
            command = [*own_python_command("npu_daemon.__main__"), "serve", *words]
            return subprocess.Popen(command, env=self.environment, stderr=log)

    def start_client(self, tenant: int) -> subprocess.Popen[bytes]:
        """Start the client of a tenant, which goes on where the last one was."""
        script = ROOT / "benchmarks" / "reliability" / "service_client.py"
        options = {
            "first": tenant,
            "jobs": self.jobs,
            "step": self.arguments.tenants,
            "variants": self.arguments.variants,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        command = [sys.executable, str(script), self.wires[tenant].address, str(self.answers(tenant)), *words]
        environment = {**self.environment, "ASCEND_GYM_KEYS": str(self._keys(tenant)), "TMPDIR": "/tmp"}
        with (self.folder / f"client{tenant}.log").open("ab") as log:
            return subprocess.Popen(command, env=environment, stderr=log)

    @property
    def unfinished(self) -> bool:
        """Whether a client still asks; who has ended otherwise than by its own will is started again."""
        for tenant, client in enumerate(self.clients):
            if client.poll() not in (None, 0):
                self.clients[tenant] = self.start_client(tenant)
        if self.daemon.poll() is not None:  # a full disk ends it, and whoever looks after it starts it again
            self.done["restarted"] += 1
            self.daemon = self.start_daemon()
        return any(client.poll() is None for client in self.clients)

    # --- what happens ---

    def kill(self, kind: str, chance: random.Random) -> bool:
        """Kill a process of a kind; return whether there was one."""
        workers = children_of(self.daemon.pid, "worker")
        asking = [client.pid for client in self.clients if client.poll() is None]
        victims = {
            "worker": workers,
            "below_worker": [pid for worker in workers for pid in descendants_of(worker)],
            "broker": [self.daemon.pid],
            "client": asking,
        }[kind]
        if not victims:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(sorted(victims)), signal.SIGKILL)
        if kind == "broker":
            self.daemon.wait()
            self.daemon = self.start_daemon()
        return True

    def damage(self, chance: random.Random) -> bool:
        """Damage a file of the cache as disks, power failures and people do."""
        part = self.cache / chance.choice(DAMAGED_PARTS)
        files = [path for path in sorted(part.rglob("*")) if path.is_file() and path.name != "lock"]
        if not files:
            return False
        path, how = chance.choice(files), chance.choice(("truncate", "flip", "empty", "remove"))
        with contextlib.suppress(OSError):  # gone meanwhile
            size_bytes = path.stat().st_size
            if how == "remove":
                path.unlink()
            elif how == "flip" and size_bytes:
                with path.open("r+b") as file:
                    at = chance.randrange(size_bytes)
                    file.seek(at)
                    byte = file.read(1)[0]
                    file.seek(at)
                    file.write(bytes([byte ^ (1 << chance.randrange(8))]))
            else:
                os.truncate(path, size_bytes // 2 if how == "truncate" else 0)
            self.done[f"{how} in {part.name}"] += 1
            return True
        return False

    def happen(self, kind: str, chance: random.Random) -> bool:
        """Let something else happen; return whether it did."""
        seconds = chance.uniform(1.0, 4.0)
        if kind == "stopped_worker":
            workers = children_of(self.daemon.pid, "worker")
            return bool(workers) and _stop_for(chance.choice(workers), seconds)
        if kind == "stopped_broker":
            return _stop_for(self.daemon.pid, seconds)
        if kind == "full_disk":
            return self.mounted and self._fill_for(seconds)
        if kind == "cut_log":
            return self._cut_log(chance)
        chance.choice(self.wires).hang()
        return True

    def _fill_for(self, seconds: float) -> bool:
        filling = self.disk / "filling"
        with contextlib.suppress(OSError), filling.open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
        threading.Timer(seconds, lambda: filling.unlink(missing_ok=True)).start()
        return True

    def _cut_log(self, chance: random.Random) -> bool:
        assert self.settings.journal_path is not None
        log = Path(f"{self.settings.journal_path}-wal")
        self.daemon.kill()
        self.daemon.wait()
        cut = log.exists() and log.stat().st_size > 0
        if cut:
            os.truncate(log, max(0, log.stat().st_size - chance.randrange(1, 20_000)))
        self.daemon = self.start_daemon()
        return cut

    # --- what came of it ---

    def answered(self) -> list[dict[str, Any]]:
        """Return the answers that clients have written down, each line whole."""
        found = []
        for tenant in range(self.arguments.tenants):
            if self.answers(tenant).exists():
                lines = self.answers(tenant).read_bytes().split(b"\n")[:-1]
                found += [json.loads(line) for line in lines]
        return found

    def charges(self) -> list[tuple[bytes, str]]:
        """Return who was charged for what, as the daemon has it on record."""
        assert self.settings.journal_path is not None
        with contextlib.closing(JobJournal(self.settings.journal_path)) as journal:
            return [each.name for each in journal.load().charges for _ in range(each.charge.evaluations)]

    def stop(self) -> tuple[list[str], list[str]]:
        """End everything; return the processes and the temporary files that are left of the daemon."""
        for process in self.clients:
            process.kill()
            process.wait()
        (self.disk / "filling").unlink(missing_ok=True)
        self.daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.daemon.wait(60)
        self.daemon.kill()
        self.daemon.wait()
        for wire in self.wires:
            wire.close()
        time.sleep(1.0)  # for what ends with its parent
        before, tempfile.tempdir = tempfile.tempdir, str(self.scratch)
        remove_abandoned_folders()  # of brokers that were killed, as the next daemon does
        tempfile.tempdir = before
        return list(processes_with(str(self.scratch))), sorted(each.name for each in self.scratch.iterdir())

    def remove(self) -> None:
        """Unmount the disk."""
        if self.mounted:
            subprocess.run(["umount", str(self.disk)], check=True)


def _stop_for(pid: int, seconds: float) -> bool:
    def go_on() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(seconds, go_on).start()
        return True
    return False


def processes_with(folder: str) -> Iterator[str]:
    """Yield the command lines of processes whose temporary folder is ``folder``."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"TMPDIR={folder}".encode() in (entry / "environ").read_bytes().split(
                b"\0"
            ):
                yield (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


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


def run(
    folder: Path,
    arguments: argparse.Namespace,
    jobs: int,
    faults: list[tuple[str, str]],
    opened: contextlib.ExitStack,
) -> tuple[Cluster, float, tuple[list[str], list[str]]]:
    """Run jobs while faults happen.

    Returns:
        The cluster, stopped; how long it took; and what is left of it: processes and temporary files. Its
        disk goes with ``opened``.
    """
    chance = random.Random(arguments.seed)
    folder.mkdir()
    cluster = Cluster(folder, arguments, jobs)
    opened.callback(cluster.remove)
    acts: dict[str, Callable[[str], bool]] = {
        "kill": lambda kind: cluster.kill(kind, chance),
        "damage": lambda _: cluster.damage(chance),
        "other": lambda kind: cluster.happen(kind, chance),
    }
    waiting = list(faults)
    began_s = time.monotonic()
    due_s = began_s + arguments.spacing_s
    try:
        while cluster.unfinished and time.monotonic() - began_s < arguments.limit_s:
            if waiting and time.monotonic() >= due_s:
                act, kind = waiting.pop(0)
                if acts[act](kind):
                    cluster.done[kind] += 1
                elif act != "other" or cluster.mounted:
                    waiting.insert(min(len(waiting), 3), (act, kind))  # nobody to do it to at this moment
                due_s = time.monotonic() + chance.uniform(0, 2 * arguments.spacing_s)
            time.sleep(PAUSE_S)
        took_s = time.monotonic() - began_s
    finally:
        left = cluster.stop()
    return cluster, took_s, left


def faults_of(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Return what is to happen, in a random order."""
    chance = random.Random(arguments.seed + 1)
    faults = [("kill", chance.choice(KILLED)) for _ in range(arguments.kills)]
    faults += [("damage", "damage")] * arguments.corruptions
    faults += [("other", OTHERS[number % len(OTHERS)]) for number in range(arguments.others)]
    chance.shuffle(faults)
    return faults


def main() -> int:
    """Run undisturbed, then with faults; compare, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--variants", type=int, default=40, help="different kernels among them")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--corruptions", type=int, default=50)
    parser.add_argument("--others", type=int, default=25, help="what else happens, each kind in turn")
    parser.add_argument("--tenants", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spacing-s", type=float, default=2.0, help="mean time between faults")
    parser.add_argument("--limit-s", type=float, default=7200.0)
    parser.add_argument("--keep", type=Path, help="folder for logs and answers; default: none are kept")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="ag-chaos-") as parent, contextlib.ExitStack() as opened:
        folder = arguments.keep or Path(parent)
        folder.mkdir(parents=True, exist_ok=True)
        calm, calm_s, _ = run(folder / "calm", arguments, arguments.variants, [], opened)
        chaos, chaos_s, left = run(folder / "chaos", arguments, arguments.jobs, faults_of(arguments), opened)
        expected = {answer["job"]: answer["result"] for answer in calm.answered()}
        answers = chaos.answered()
        found = {answer["job"]: answer["result"] for answer in answers}
        charges = chaos.charges()
    wrong = [job for job, result in found.items() if result != expected.get(job % arguments.variants)]
    report = {
        "jobs": arguments.jobs,
        "happened": dict(sorted(chaos.done.items())),
        "tmpfs": chaos.mounted,
        "lost": arguments.jobs - len(found),
        "answered_twice": len(answers) - len(found),
        "different": len(wrong),
        "charged_for_damage": sum(json.loads(found[job])["charge"]["evaluations"] for job in wrong),
        "charged": len(charges),
        "charged_twice": len(charges) - len(set(charges)),
        "left_running": left[0],
        "left_in_temporary_folder": left[1],
        "undisturbed_s_per_job": calm_s / arguments.variants,
        "disturbed_s": chaos_s,
        "load": os.getloadavg(),
    }
    print(json.dumps(report, indent=2))
    if arguments.keep is not None:
        differences = [[expected.get(job % arguments.variants), found[job]] for job in wrong]
        (arguments.keep / "differences.json").write_text(json.dumps(differences, indent=1))
    good = len(expected) == arguments.variants and not report["lost"]
    names = ("answered_twice", "different", "charged_twice", "left_running", "left_in_temporary_folder")
    return 0 if good and not any(report[name] for name in names) else 1


if __name__ == "__main__":
    sys.exit(main())
