"""A sweep of which a Ray worker, a daemon and the driver are killed: does it end with the same tables?

One sweep is left alone. A second, on daemons that know nothing, loses with SIGKILL a Ray worker, then a
daemon (started again at its address), then its driver (which is resumed). Journals and tables of both must
be the same bytes. Prints one JSON document; exit status 1 when they differ.

    python benchmarks/sweep_chaos.py --ops core/add core/muls --methods best-of-n openevolve --seeds 0 1 \\
        --budget 5 --out /tmp/chaos
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ascend_gym.client import connect
from ascend_gym.core.config import cache_root
from ascend_gym.core.own_python import own_python_command
from ascend_gym.search.journal import JOURNAL_NAME

GLANCE_S = 0.2
DAEMONS = 2


def main() -> int:
    """Make both sweeps, compare, and return the exit status."""
    arguments = _parse()
    seconds = {}
    for name, chaos in (("unbroken", False), ("broken", True)):
        with _daemons(arguments.out / f"daemons-{name}") as daemons:
            started_s = time.monotonic()
            command = [*_sweep(arguments), *daemons.options(), "--out", str(arguments.out / name)]
            kills = _Chaos(command, arguments.out / name, daemons).run() if chaos else _whole(command)
            seconds[name] = round(time.monotonic() - started_s, 1)
    same = {name: _same(arguments.out, name) for name in ("table.md", JOURNAL_NAME)}
    print(json.dumps({"same": same, "kills": kills, "seconds": seconds}, indent=2))
    return 0 if all(same.values()) and len(kills) == 3 else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ops", nargs="+", required=True)
    parser.add_argument("--methods", nargs="+", required=True)
    parser.add_argument("--seeds", nargs="+", default=["0"])
    parser.add_argument("--budget", default="5")
    parser.add_argument("--ray-address", default="local")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def _sweep(arguments: argparse.Namespace) -> list[str]:
    told = (("--op", arguments.ops), ("--method", arguments.methods), ("--seed", arguments.seeds))
    options = [word for option, values in told for value in values for word in (option, value)]
    fixed = ["--budget", arguments.budget, "--ray-address", arguments.ray_address]
    return [*own_python_command("ascend_gym.cli"), "sweep", *options, *fixed]


def _whole(command: list[str]) -> list[str]:
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
    return []


class _Daemons:
    """Daemons with caches of their own, of which one can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes = [self._started(number) for number in range(DAEMONS)]

    def options(self) -> list[str]:
        """Return the options of a sweep that uses them, one run at a time on each."""
        return [word for number in range(DAEMONS) for word in ("--daemon", f"{self._address(number)}=1")]

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
        return f"ipc://{self._folder}/d{number}"

    def _started(self, number: int) -> subprocess.Popen[bytes]:
        cache = self._folder / f"cache{number}"
        cache.mkdir(parents=True, exist_ok=True)
        if not (cache / "toolchain").exists():
            (cache / "toolchain").symlink_to(cache_root() / "toolchain")
        options = ["--bind", self._address(number), "--workers", "1", "--cache-dir", str(cache)]
        command = [*own_python_command("npu_daemon.__main__"), "serve", *options]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def _daemons(folder: Path) -> Iterator[_Daemons]:
    daemons = _Daemons(folder)
    try:
        for number in range(DAEMONS):
            connect(daemons._address(number), connect_timeout_s=120.0).close()
        yield daemons
    finally:
        daemons.close()


class _Chaos:
    """One sweep whose parts are killed as its journals grow."""

    def __init__(self, command: list[str], out: Path, daemons: _Daemons) -> None:
        self._command, self._out, self._daemons = command, out, daemons
        self._killed: list[str] = []

    def run(self) -> list[str]:
        """Run it to its end and return what was killed."""
        driver = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        self._once_grown(driver, 3, "ray worker", lambda: os.kill(_ray_worker(driver.pid), signal.SIGKILL))
        self._once_grown(driver, 8, "daemon", self._daemons.kill_one)
        self._once_grown(driver, 13, "driver", driver.kill)
        driver.wait()
        subprocess.run([*self._command, "--resume"], stdin=subprocess.DEVNULL, check=True)
        return self._killed

    def _once_grown(
        self, driver: subprocess.Popen[bytes], results: int, name: str, kill: Callable[[], None]
    ) -> None:
        """Kill once so many results are on file; not a sweep that has ended before."""
        while driver.poll() is None and _results(self._out) < results:
            time.sleep(GLANCE_S)
        if driver.poll() is None:
            kill()
            self._killed.append(name)
            print(f"killed: {name}, with {_results(self._out)} results on file", file=sys.stderr)


def _results(out: Path) -> int:
    return sum(path.read_bytes().count(b'"kind":"result"') for path in out.rglob(JOURNAL_NAME))


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


def _same(out: Path, name: str) -> bool:
    """Say whether the files of that name are the same in both sweeps."""
    found = [{path.relative_to(root): path.read_bytes() for path in root.rglob(name)} for root in _roots(out)]
    return bool(found[0]) and found[0] == found[1]


def _roots(out: Path) -> tuple[Path, Path]:
    return out / "unbroken", out / "broken"


if __name__ == "__main__":
    sys.exit(main())
