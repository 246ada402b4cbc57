"""Composes brokers and workers from settings."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path

from pydantic import BaseModel

from ascend_gym.core.config import usable_cache
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.private_folder import PrivateFolder, remove_abandoned_folders
from ascend_gym.core.protocols import Backend
from npu_daemon.broker.config import BrokerConfig
from npu_daemon.broker.journal import JobJournal
from npu_daemon.broker.shell import Broker
from npu_daemon.broker.status import StatusQuestions
from npu_daemon.cache_folder import in_use
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.toolkit import open_toolkit
from npu_daemon.operators import TrustedReferences
from npu_daemon.replay import ReplayService
from npu_daemon.security import check_bind_address
from npu_daemon.service import open_service, result_store
from npu_daemon.settings import DaemonSettings, RequestLimits
from npu_daemon.simulator.chips import load_chip
from npu_daemon.worker import Service

BACKENDS = {
    "simulator": "npu_daemon.backends.simulator:SimulatorBackend",
    "cann": "npu_daemon.backends.cann:CannBackend",
}
ENTRY_POINTS = "ascend_gym.backends"
"""Group of entry points by which installed packages bring backends: ``NAME = "module:Class"``."""

REPLAY = "replay"


class WorkerOptions(BaseModel):
    """Settings of a daemon's worker processes."""

    backend: str
    chip: str
    cache_dir: Path
    cache_limit_bytes: int
    recording: Path | None
    cann: CannSettings = CannSettings()
    limits: RequestLimits = RequestLimits()
    reference_folders: tuple[Path, ...] | None = None  # ``None``: everywhere
    reference_digests: tuple[str, ...] = ()

    def open_service(self, private_folder: Path) -> Service:
        """Open the service of a worker.

        Args:
            private_folder: folder of the daemon in which candidates run.

        Raises:
            MisuseError: the backend, chip or recording does not exist.
            InfrastructureError: the backend cannot work on this host.
        """
        if self.backend == REPLAY:
            return ReplayService(_required(self.recording), self.chip)
        factory = load_backend(self.backend)
        if self.backend == "cann":
            factory = partial(factory, settings=self.cann)
        backend = factory(cache_dir=self.cache_dir, chip=self.chip)
        return open_service(
            backend,
            self.cache_dir,
            self.cache_limit_bytes,
            self._trusted(private_folder),
            self.limits,
        )

    def _trusted(self, private_folder: Path) -> TrustedReferences | None:
        if self.reference_folders is None:
            return None
        written = (self.cache_dir, private_folder)
        return TrustedReferences(self.reference_folders, frozenset(self.reference_digests), written)


def run_broker(
    settings: DaemonSettings, control_fd: int | None = None, private_folder: Path | None = None
) -> str | None:
    """Serve until the daemon is stopped; return what went wrong, or ``None`` after a requested stop.

    Args:
        settings: settings of the daemon.
        control_fd, private_folder: for a private daemon, see ``BrokerConfig``; it keeps no jobs.

    Raises:
        MisuseError: a setting is invalid on this host.
        InfrastructureError: the daemon cannot serve.
    """
    check_bind_address(settings.bind, settings.policy)
    _check_backend(settings)
    remove_abandoned_folders()
    journal_path = settings.journal_path if control_fd is None else None
    cache_dir = usable_cache(settings.cache_dir.resolve())
    questions = StatusQuestions()
    if settings.metrics is not None:
        from npu_daemon.metrics import serve_metrics  # the library is not needed otherwise

        serve_metrics(settings.metrics, questions.ask)
    try:
        store = result_store(cache_dir, settings.cache_limit_bytes)
    except sqlite3.Error as error:
        raise InfrastructureError(f"{cache_dir} cannot hold results: {error}") from error
    config = BrokerConfig(
        bind=settings.bind,
        workers=settings.worker_count,
        devices=settings.device_count,
        worker_command=_worker_command(_worker_options(settings, private=control_fd is not None)),
        store=store,
        private_folder=PrivateFolder(private_folder),
        control_fd=control_fd,
        journal=JobJournal(journal_path) if journal_path is not None else None,
        policy=settings.policy,
        quota=settings.quota.quota(),
        quotas={name: quota.quota() for name, quota in settings.tenants.items()},
        max_device_seconds=settings.max_device_seconds,
        min_free_bytes=int(settings.min_free_mib * 2**20),
        written_folders=(cache_dir,),
        repairs=store.repairs,
        questions=questions,
    )
    with in_use(cache_dir):
        return Broker(config).run()


def load_backend(name: str) -> Callable[..., Backend]:
    """Return the class of a backend.

    Args:
        name: key of ``BACKENDS``, ``module:Class``, or an entry point of ``ENTRY_POINTS``. The class is
            called with ``cache_dir`` and ``chip``.

    Raises:
        MisuseError: the backend does not exist.
    """
    brought = {each.name: each.value for each in entry_points(group=ENTRY_POINTS)}
    module_name, colon, class_name = (brought | BACKENDS).get(name, name).partition(":")
    if not colon:
        known = [*sorted(brought | BACKENDS), REPLAY]
        raise MisuseError(f"no backend {name!r}: use one of {known} or module:Class")
    try:
        factory: Callable[..., Backend] = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise MisuseError(f"backend {name!r} cannot be loaded: {error}") from error
    return factory


def _check_backend(settings: DaemonSettings) -> None:
    """Reject invalid settings here; in the workers they would look like failures to start."""
    if settings.backend == REPLAY:
        ReplayService(_required(settings.recording), settings.chip)
        return
    load_backend(settings.backend)
    if settings.backend in BACKENDS:
        load_chip(settings.chip)
    if settings.backend == "cann":
        open_toolkit(settings.cann)


def _required(recording: Path | None) -> Path:
    if recording is None:
        raise MisuseError("the replay backend needs --recording, the results.sqlite of a daemon's cache")
    return recording


def _worker_options(settings: DaemonSettings, *, private: bool) -> WorkerOptions:
    """Return the settings of workers; a private daemon fully trusts its client, which started it."""
    recording = settings.recording
    return WorkerOptions(
        backend=settings.backend,
        chip=settings.chip,
        cache_dir=settings.cache_dir.resolve(),
        cache_limit_bytes=settings.cache_limit_bytes,
        recording=recording.resolve() if recording is not None else None,
        cann=settings.cann,
        limits=settings.limits,
        reference_folders=None if private else tuple(each.resolve() for each in settings.reference_folders),
        reference_digests=settings.reference_digests,
    )


def _worker_command(options: WorkerOptions) -> Callable[[str, str, Path], Sequence[str]]:
    def command(address: str, worker_id: str, scratch_folder: Path) -> Sequence[str]:
        return [
            *(*own_python_command("npu_daemon.__main__"), "worker"),
            *("--connect", address),
            *("--worker-id", worker_id),
            *("--scratch-folder", str(scratch_folder)),
            *("--options", options.model_dump_json()),
        ]

    return command
