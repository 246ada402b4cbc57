"""Command line of the daemon: ``npu-daemon serve``."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.private_folder import PrivateFolder, remove_abandoned_folders
from ascend_gym.core.protocols import Backend
from npu_daemon.broker import Broker, BrokerConfig
from npu_daemon.service import open_service, result_store
from npu_daemon.simulator.chips import load_chip
from npu_daemon.worker import Worker, die_with_parent

BACKENDS = {"simulator": "npu_daemon.backends.simulator:SimulatorBackend"}
DEFAULT_ADDRESS = "tcp://127.0.0.1:5710"
EXIT_MISUSE = 2
EXIT_INFRASTRUCTURE = 3

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

BackendName = Annotated[
    str, typer.Option("--backend", help="simulator, or module:Class of a backend of your own.")
]
Chip = Annotated[str, typer.Option("--chip", help="Chip to measure for: 910B1 to 910B4 or 910_93.")]
CacheDir = Annotated[
    Path | None,
    typer.Option("--cache-dir", help="Builds, inputs and results; default $ASCEND_GYM_CACHE."),
]


@app.callback()
def _describe() -> None:
    """Evaluation daemon of ascend-gym."""


@app.command()
def serve(
    bind: Annotated[str, typer.Option(help="tcp://127.0.0.1:PORT (or :*) or ipc:///PATH.")] = DEFAULT_ADDRESS,
    backend: BackendName = "simulator",
    workers: Annotated[int, typer.Option(min=0, help="Worker processes; 0 means one per core, up to 4.")] = 0,
    cache_dir: CacheDir = None,
    chip: Chip = "910B2",
    control_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
    private_folder: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Evaluate candidates for clients until SIGTERM (which finishes what runs) or SIGINT."""
    folder = (cache_dir or cache_root()).resolve()
    _check_backend(backend, chip)
    remove_abandoned_folders()
    broker = Broker(
        BrokerConfig(
            bind=bind,
            workers=workers or min(4, os.cpu_count() or 1),
            worker_command=_worker_command(backend, folder, chip),
            store=result_store(folder),
            private_folder=PrivateFolder(private_folder),
            control_fd=control_fd,
        )
    )
    failure = broker.run()
    if failure is not None:
        raise InfrastructureError(failure)


@app.command(hidden=True)
def worker(
    connect: Annotated[str, typer.Option()],
    worker_id: Annotated[str, typer.Option()],
    scratch_folder: Annotated[Path, typer.Option()],
    parent_pid: Annotated[int, typer.Option()],
    backend: BackendName,
    cache_dir: Annotated[Path, typer.Option()],
    chip: Chip,
) -> None:
    """Serve one broker; started by it."""
    die_with_parent(parent_pid)
    tempfile.tempdir = str(scratch_folder)  # the broker removes it, even after a worker that was killed
    service = open_service(load_backend(backend)(cache_dir=cache_dir, chip=chip), cache_dir)
    Worker(service, connect, worker_id).run()


def _check_backend(name: str, chip: str) -> None:
    """Refuse here what would otherwise look like workers that cannot start.

    Raises:
        MisuseError: there is no such backend, or the simulator has no such chip.
    """
    load_backend(name)
    if name == "simulator":
        load_chip(chip)


def load_backend(name: str) -> Callable[..., Backend]:
    """Return the class of a backend.

    Args:
        name: a key of ``BACKENDS`` or ``module:Class``; the class is called with ``cache_dir`` and ``chip``.

    Raises:
        MisuseError: there is no such backend.
    """
    module_name, colon, class_name = BACKENDS.get(name, name).partition(":")
    if not colon:
        raise MisuseError(f"no backend {name!r}: use one of {sorted(BACKENDS)} or module:Class")
    try:
        factory: Callable[..., Backend] = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise MisuseError(f"backend {name!r} cannot be loaded: {error}") from error
    return factory


def _worker_command(backend: str, cache_dir: Path, chip: str) -> Callable[[str, str, Path], Sequence[str]]:
    def command(address: str, worker_id: str, scratch_folder: Path) -> Sequence[str]:
        return [
            *(*own_python_command("npu_daemon.__main__"), "worker"),
            *("--connect", address),
            *("--worker-id", worker_id),
            *("--scratch-folder", str(scratch_folder)),
            *("--parent-pid", str(os.getpid())),
            *("--backend", backend),
            *("--cache-dir", str(cache_dir)),
            *("--chip", chip),
        ]

    return command


def main() -> None:
    """Run the command line; misuse exits with 2, missing or broken infrastructure with 3."""
    logging.basicConfig(level=logging.INFO, format="npu-daemon: %(message)s", stream=sys.stderr)
    try:
        app()
    except MisuseError as error:
        typer.echo(f"npu-daemon: {error}", err=True)
        sys.exit(EXIT_MISUSE)
    except (InfrastructureError, OSError) as error:
        typer.echo(f"npu-daemon: {error}", err=True)
        sys.exit(EXIT_INFRASTRUCTURE)


if __name__ == "__main__":
    main()
