"""Runs as Ray actors on any number of hosts.

An actor takes one unit of the custom resource ``npu_host`` and executes one run after another: a host that
was started with ``ray start --resources='{"npu_host": 4}'`` executes four at a time. Ray does not restart
actors: the driver restarts a lost run on any host from the journal that it has received. Hosts may
join and leave.

The driver polls actors instead of receiving messages, because that also works through Ray Client
(``ray://``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ascend_gym.core.config import set_up_own_ray
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.interrupts import handlers_kept
from ascend_gym.sweep.child_run import ChildRun, RunPlace
from ascend_gym.sweep.executors import POLL_S, lost
from ascend_gym.sweep.jobs import RunTask, Update

RESOURCE = "npu_host"
LOCAL = "local"

_OBJECT_STORE_BYTES = 80 * 2**20
_CAPACITY_AGE_S = 2.0
_REASON_CHARS = 500


class RunActor:
    """Executes runs in child processes of a Ray worker, one at a time."""

    def __init__(self) -> None:
        import ray

        context = ray.get_runtime_context()
        self._place = RunPlace(f"{ray.util.get_node_ip_address()}/{context.get_node_id()[:8]}")
        self._run: ChildRun | None = None

    def begin(self, task: RunTask, timeout_s: float) -> Update:
        """Start a run and return its first update."""
        self._run = self._place.begin(task)
        return self._run.updates(timeout_s)

    def updates(self, timeout_s: float) -> Update:
        """Return news of the run."""
        assert self._run is not None, "a run was begun"
        return self._run.updates(timeout_s)

    def stop(self) -> None:
        """Ask the run to stop."""
        if self._run is not None:
            self._run.stop()


@contextmanager
def connected_ray(address: str, runs: int) -> Iterator[Any]:
    """Connect to a Ray cluster, or start one on this host for the duration of the block.

    Args:
        address: ``local`` starts one; ``auto`` uses that of this host; otherwise ``HOST:PORT`` or
            ``ray://HOST:PORT``.
        runs: maximum number of simultaneous runs of a local cluster.

    Raises:
        MisuseError: Ray is not installed.
        InfrastructureError: there is no cluster at the address, or none can be started.
    """
    if address == LOCAL:
        set_up_own_ray()
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MisuseError("sweeps over Ray need Ray: pip install 'ascend-gym[sweep]'") from error
    options: dict[str, Any] = {"configure_logging": False}
    if address == LOCAL:
        options |= {"num_cpus": 1, "resources": {RESOURCE: runs}, "include_dashboard": False}
        options |= {"object_store_memory": _OBJECT_STORE_BYTES}
    begin_ray(ray, address, **options)
    try:
        yield ray
    finally:
        ray.shutdown()


def begin_ray(ray: Any, address: str, **options: Any) -> None:
    """Connect Ray to a cluster, or start one on this host.

    Args:
        ray: the module.
        address: see ``connected_ray``.
        options: further arguments of ``ray.init``.

    Raises:
        InfrastructureError: there is no cluster at the address, or none can be started; the message has one
            line.
    """
    try:
        with handlers_kept():
            ray.init(address=address, log_to_driver=False, **options)
    except Exception as error:  # of a node that starts too slowly, Ray raises no narrower one
        reason = " ".join(str(error).split())[:_REASON_CHARS] or type(error).__name__
        if address == LOCAL:
            expected = "Ray should start on this host, but did not"
            advice = "where the host is busy or its memory is short, try again later or with fewer processes"
        else:
            expected = f"expected a Ray cluster at {address!r}, and found none"
            advice = "start one there with 'ray start --head', or give the address of one that runs"
        raise InfrastructureError(f"{expected}: {reason.rstrip('.')}; {advice}") from error


class RayExecutor:
    """Executes runs as actors of a connected Ray cluster.

    Args:
        ray: the module, connected.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._actor_class = ray.remote(num_cpus=0, resources={RESOURCE: 1}, max_restarts=0)(RunActor)
        self._actors: dict[Any, tuple[RunTask, Any]] = {}  # by the answer that is awaited
        self._unplaced: set[Any] = set()  # first answers of new actors, which may be waiting for a unit
        self._idle: list[Any] = []
        self._capacity, self._capacity_of_s = 0, float("-inf")

    def capacity(self) -> int:
        """Return the cluster's number of units of the resource."""
        if time.monotonic() - self._capacity_of_s > _CAPACITY_AGE_S:
            with self._cluster():
                self._capacity = int(self._ray.cluster_resources().get(RESOURCE, 0))
            self._capacity_of_s = time.monotonic()
        return self._capacity

    def start(self, task: RunTask) -> None:
        """Start a run in an idle actor, or in a new one on any host with a free unit."""
        if self._idle:
            actor = self._idle.pop()
            answer = actor.begin.remote(task, POLL_S)
        else:
            actor = self._actor_class.remote()
            answer = actor.begin.remote(task, POLL_S)
            self._unplaced.add(answer)
        self._actors[answer] = task, actor

    def updates(self, timeout_s: float) -> list[Update]:
        """Return updates of runs; see ``Executor.updates``."""
        if not self._actors:
            time.sleep(timeout_s)  # no run could be begun yet: hosts are missing, or daemons paused
            return []
        answers = list(self._actors)
        with self._cluster():
            ready, _ = self._ray.wait(answers, num_returns=len(answers), timeout=0)
            if not ready:
                ready, _ = self._ray.wait(answers, num_returns=1, timeout=timeout_s)
        return [update for answer in ready if (update := self._taken(answer)) is not None]

    def stop_all(self) -> None:
        """Ask all runs to stop."""
        for _, actor in self._actors.values():
            actor.stop.remote()

    def close(self) -> None:
        """Kill all runs that are still active; a run ends when its worker is killed."""
        self._end_idle()
        for _, actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()
        self._unplaced.clear()

    def _end_idle(self) -> None:
        for actor in self._idle:
            self._ray.kill(actor)
        self._idle.clear()

    @contextmanager
    def _cluster(self) -> Iterator[None]:
        """Convert Ray's errors about a lost cluster into ours."""
        try:
            yield
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise InfrastructureError(f"the Ray cluster is gone: {error}; resume with --resume") from error

    def _taken(self, answer: Any) -> Update | None:
        """Return an actor's answer, and poll it again unless its run has ended.

        An actor whose run has ended is kept for the next run, unless another actor waits for its unit.
        """
        task, actor = self._actors.pop(answer)
        self._unplaced.discard(answer)
        try:
            update: Update = self._ray.get(answer)
        except self._ray.exceptions.RayError as error:
            self._ray.kill(actor)
            self._end_idle()  # its host may be gone, with others
            return lost(task, f"its Ray worker is gone: {' '.join(str(error).split())[:_REASON_CHARS]}")
        if update.end is None:
            self._actors[actor.updates.remote(POLL_S)] = task, actor
        elif self._unplaced:
            self._ray.kill(actor)
        else:
            self._idle.append(actor)
        return update if update.end or update.parts or update.steps else None
