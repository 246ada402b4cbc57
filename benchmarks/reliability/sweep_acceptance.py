"""Do two daemons do the work of one in half the time, and does a sweep outlive the death of its parts?

Three times the same sweep, each with an evaluation store that knows nothing (the simulator itself is built
before): on one daemon, on two, and on two while a Ray worker, a daemon (started again at its address) and the
driver (which is resumed) are each killed once with SIGKILL. Journals and tables of all three must be the same
bytes. The ratio is of the wall times of whole sweeps, with the start of Ray and the tables at the end. Prints
one JSON document; exit status 1 when something differs, or two daemons are not 1.7 times as fast.

    python benchmarks/reliability/sweep_acceptance.py --ops core --budget 20 --seeds 0 1 2 --out runs/all
    python benchmarks/reliability/sweep_acceptance.py --ops core/add core/muls --budget 5 --out runs/two
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ascend_gym.client import connect
from ascend_gym.core.config import cache_root
from ascend_gym.core.own_python import own_python_command
from ascend_gym.search.journal import JOURNAL_NAME

METHODS = ("best-of-n", "openevolve", "ascend-optimizer")
SWEEPS = ("one", "two", "killed")
TABLE_NAME = "table.md"
WANTED_RATIO = 1.7
GLANCE_S = 0.2


def main() -> int:
    """Make the sweeps, compare, and return the exit status."""
    arguments = _parse()
    out: Path = arguments.out
    seconds = {}
    killed: list[str] = []
    for name in arguments.sweeps:
        with _opened_daemons(out / f"daemons-{name}", 1 if name == "one" else 2) as daemons:
            command = [
                *_sweep(arguments),
                *daemons.options(arguments.runs_per_daemon),
                "--out",
                str(out / name),
            ]
            started_s = time.monotonic()
            if name == "killed":
                killed = _Chaos(command, out / name, daemons, _journal_bytes(out / "two")).run()
            else:
                subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
            seconds[name] = time.monotonic() - started_s
    told, passed = _judged(out, seconds, killed)
    print(json.dumps(told, indent=2))
    return 0 if passed else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ops", nargs="+", required=True)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", nargs="+", default=["0"])
    parser.add_argument("--budget", default="5")
    parser.add_argument("--ray-address", default="local")
    parser.add_argument("--runs-per-daemon", type=int, default=2)
    parser.add_argument("--sweeps", nargs="+", choices=SWEEPS, default=SWEEPS)
    parser.add_argument("--out", type=Path, required=True, help="folder that is not there yet")
    arguments = parser.parse_args()
    if arguments.out.exists():
        parser.error(f"{arguments.out} is there already: name a new folder with --out")
    if "killed" in arguments.sweeps and "two" not in arguments.sweeps:
        parser.error("killed needs two: it tells how far a sweep is by what that one has written")
    return arguments


def _sweep(arguments: argparse.Namespace) -> list[str]:
    told = (("--op", arguments.ops), ("--method", arguments.methods), ("--seed", arguments.seeds))
    options = [word for option, values in told for value in values for word in (option, value)]
    fixed = ["--budget", arguments.budget, "--ray-address", arguments.ray_address]
    return [*own_python_command("ascend_gym.cli"), "sweep", *options, *fixed]


def _judged(out: Path, seconds: dict[str, float], killed: Sequence[str]) -> tuple[dict[str, object], bool]:
    """Return what there is to tell, and whether it is as it should be."""
    results = sum(path.read_bytes().count(b'"kind":"result"') for path in (out / "two").rglob(JOURNAL_NAME))
    same = {name: _same([out / each for each in seconds], name) for name in (TABLE_NAME, JOURNAL_NAME)}
    told: dict[str, object] = {
        "results": results,
        "seconds": {name: round(each, 1) for name, each in seconds.items()},
        "same": same,
        "killed": killed,
    }
    passed = all(same.values()) and len(killed) == 3 * ("killed" in seconds)
    if {"one", "two"} <= seconds.keys():
        ratio = seconds["one"] / seconds["two"]
        told["ratio"] = round(ratio, 2)
        passed = passed and ratio >= WANTED_RATIO
    return told, passed


def _same(roots: Sequence[Path], name: str) -> bool:
    """Say whether the files of that name are the same below all ``roots``."""
    found = [{path.relative_to(root): path.read_bytes() for path in root.rglob(name)} for root in roots]
    return bool(found[0]) and all(each == found[0] for each in found)


class _Daemons:
    """Daemons of one worker with an evaluation store of their own, of which one can be killed."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._cache = folder / "cache"
        self._cache.mkdir(parents=True)
        (self._cache / "toolchain").symlink_to(cache_root() / "toolchain")
        self._processes = [self._started(number) for number in range(count)]

    @property
    def addresses(self) -> list[str]:
        """Where they listen."""
        return [self._address(number) for number in range(len(self._processes))]

    def options(self, runs: int) -> list[str]:
        """Return the options of a sweep that makes so many runs at a time on each."""
        return [word for address in self.addresses for word in ("--daemon", f"{address}={runs}")]

    def kill_one(self) -> None:
        """Kill the first, and start it again."""
        self._processes[0].kill()
        self._processes[0].wait()
        self._processes[0] = self._started(0)

    def close(self) -> None:
        """Stop all."""
        for process in self._processes:
            process.terminate()
            process.wait()

    def _address(self, number: int) -> str:
        return f"ipc://{self._folder.resolve()}/d{number}"

    def _started(self, number: int) -> subprocess.Popen[bytes]:
        options = ["--bind", self._address(number), "--workers", "1", "--cache-dir", str(self._cache)]
        command = [*own_python_command("npu_daemon.__main__"), "serve", *options]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def _opened_daemons(folder: Path, count: int) -> Iterator[_Daemons]:
    daemons = _Daemons(folder, count)
    try:
        for address in daemons.addresses:
            connect(address, connect_timeout_s=120.0).close()
        yield daemons
    finally:
        daemons.close()


class _Chaos:
    """One sweep whose parts are killed as its journals grow."""

    def __init__(self, command: list[str], out: Path, daemons: _Daemons, whole_bytes: int) -> None:
        self._command, self._out, self._daemons = command, out, daemons
        self._whole_bytes = whole_bytes
        self._killed: list[str] = []

    def run(self) -> list[str]:
        """Run it to its end and return what was killed."""
        driver = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        self._once_grown(driver, 0.2, "ray worker", lambda: os.kill(_ray_worker(driver.pid), signal.SIGKILL))
        self._once_grown(driver, 0.4, "daemon", self._daemons.kill_one)
        self._once_grown(driver, 0.6, "driver", driver.kill)
        driver.wait()
        subprocess.run([*self._command, "--resume"], stdin=subprocess.DEVNULL, check=True)
        return self._killed

    def _once_grown(
        self, driver: subprocess.Popen[bytes], share: float, name: str, kill: Callable[[], None]
    ) -> None:
        """Kill once such a share of the journals is on file; not a sweep that has ended before."""
        while driver.poll() is None and _journal_bytes(self._out) < share * self._whole_bytes:
            time.sleep(GLANCE_S)
        if driver.poll() is None:
            kill()
            self._killed.append(name)
            print(f"killed: {name}, with {share:.0%} of the journals on file", file=sys.stderr)


def _journal_bytes(out: Path) -> int:
    return sum(path.stat().st_size for path in out.rglob(JOURNAL_NAME))


def _ray_worker(driver_pid: int) -> int:
    """Return the id of a Ray worker below the driver that makes a run."""
    parents, titles = {}, {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            titles[int(path.name)] = (path / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    for pid, title in titles.items():
        ancestor = pid
        while ancestor in parents and ancestor != driver_pid:
            ancestor = parents[ancestor]
        if ancestor == driver_pid and title.startswith(b"ray::RunActor"):
            return pid
    raise RuntimeError(f"process {driver_pid} has no Ray worker that makes a run")


if __name__ == "__main__":
    sys.exit(main())
