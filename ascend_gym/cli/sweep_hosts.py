"""Daemons and executor of a sweep: local processes or Ray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ascend_gym.cli.options import note, prepare_simulator
from ascend_gym.core.config import default_daemon_addresses
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.sweep.executors import Executor, LocalExecutor
from ascend_gym.sweep.sweep_state import DaemonSlots

NO_RAY = "none"
OWN_PROCESSES = (NO_RAY, "local")  # all of these run on this host


@dataclass(frozen=True)
class Hosts:
    """Where a sweep executes; does not affect its outcome.

    Attributes:
        ray_address: ``none`` for local processes; ``local``, ``auto`` or an address of Ray.
        daemons: addresses, each optionally with ``=RUNS`` for its maximum number of simultaneous runs;
            several joined by commas serve the same runs together.
        local_daemons: number of private daemons to start on this host per chip.
        workers: workers of each of them; 0 lets them choose.
        runs_per_daemon: maximum number of simultaneous runs per daemon.
    """

    ray_address: str = NO_RAY
    daemons: tuple[str, ...] = ()
    local_daemons: int = 0
    workers: int = 0
    runs_per_daemon: int = 2


@contextmanager
def opened_hosts(hosts: Hosts, chips: Sequence[str]) -> Iterator[tuple[list[DaemonSlots], Executor]]:
    """Open daemons and executor for the block.

    Raises:
        MisuseError: an address is invalid, Ray is missing, or a chip has no daemon.
        InfrastructureError: no daemon answers, or there is no Ray cluster.
    """
    with ExitStack() as opened:
        slots = _daemons(hosts, chips, opened)
        for chip in chips:
            if not any(each.chip in (None, chip) for each in slots):
                raise MisuseError(f"no daemon measures for {chip}: start one with --chip {chip}")
        runs = sum(each.runs or hosts.runs_per_daemon for each in slots)
        executor = _executor(hosts.ray_address, runs, opened)
        opened.callback(executor.close)
        yield slots, executor


def _daemons(hosts: Hosts, chips: Sequence[str], opened: ExitStack) -> list[DaemonSlots]:
    named = list(hosts.daemons)
    on_this_host = hosts.ray_address in OWN_PROCESSES
    if not named and on_this_host and not hosts.local_daemons:
        named = list(default_daemon_addresses())
    slots = [each for name in named if (each := _described(name, hosts.runs_per_daemon)) is not None]
    if named and not slots:
        raise InfrastructureError(f"no daemon answers at {', '.join(named)}")
    count = hosts.local_daemons or int(on_this_host and not named)
    slots += [_started(chip, hosts, opened) for chip in chips for _ in range(count)]
    return slots or [DaemonSlots(None)]


def _described(name: str, runs: int) -> DaemonSlots | None:
    """Return a daemon, or several joined by commas, with its chip; ``None`` if none answers."""
    from ascend_gym.client import connect

    address, equals, own_runs = name.partition("=")
    if equals and not (own_runs.isdecimal() and int(own_runs)):
        raise MisuseError(f"--daemon {name}: expected ADDRESS or ADDRESS=RUNS with at least 1 run at a time")
    try:
        evaluator = connect(address.split(","))
    except DaemonUnreachableError as error:
        note(f"left out: {error}")
        return None
    try:
        chip = evaluator.describe().chip
    finally:
        evaluator.close()
    return DaemonSlots(address, chip, int(own_runs) if equals else runs)


def _started(chip: str, hosts: Hosts, opened: ExitStack) -> DaemonSlots:
    from ascend_gym.client import DaemonOptions, LocalDaemon

    prepare_simulator(chip)
    daemon = opened.enter_context(LocalDaemon(DaemonOptions(chip=chip, workers=hosts.workers)))
    note(f"daemon for {chip}: process {daemon.process_pid}")
    return DaemonSlots(daemon.address, chip, hosts.runs_per_daemon)


def _executor(ray_address: str, runs: int, opened: ExitStack) -> Executor:
    if ray_address == NO_RAY:
        return LocalExecutor(runs)
    from ascend_gym.sweep.ray_executor import RESOURCE
    from ascend_gym.sweep.ray_process import RayProcess

    executor = RayProcess(ray_address, runs)
    opened.callback(executor.close)
    if not executor.capacity():
        note(
            f"no Ray node offers {RESOURCE} yet; runs begin when one joins: "
            f"ray start --address=... --resources='{{\"{RESOURCE}\": 2}}'"
        )
    return executor
