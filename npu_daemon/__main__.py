"""Command line of the daemon: ``npu-daemon serve | status | drain | resize | tenants | keygen | doctor``."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer

from ascend_gym import __version__
from ascend_gym.core.chips import require_chip
from ascend_gym.core.codec import Kind
from ascend_gym.core.config import daemon_settings as environment_settings
from ascend_gym.core.curve_keys import generate_keys
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.option_groups import grouped
from ascend_gym.core.records import DaemonStatus, TenantName, WorkerCount
from npu_daemon.doctor import examine
from npu_daemon.operator_link import ask_daemon
from npu_daemon.serving import WorkerOptions, run_broker
from npu_daemon.settings import DEFAULT_ADDRESS, DaemonSettings, daemon_settings
from npu_daemon.worker import Worker

EXIT_UNUSABLE = 1
EXIT_MISUSE = 2
EXIT_INFRASTRUCTURE = 3
app = typer.Typer(
    rich_markup_mode=None,  # its panels cut the names of options
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Address = Annotated[str, typer.Option("--daemon", metavar="ADDR", help="Address of the daemon.")]
File = typer.Option(dir_okay=False)
Devices = Annotated[
    list[int] | None, typer.Option(help="Number of an NPU that --backend cann may use; repeatable.")
]
Chip = Annotated[
    str | None,
    typer.Option(
        "--chip",
        "--chip-file",
        metavar="CHIP",
        help="910B1 to 910B4 or 910_93, or a FILE.toml of your own; default 910B2.",
        callback=lambda chip: chip if chip is None else require_chip(chip),
    ),
]
ReferenceFolders = Annotated[
    list[Path] | None,
    typer.Option("--reference-folder", help="Accept clients' operators below this folder; repeatable."),
]
ReferenceDigests = Annotated[
    list[str] | None,
    typer.Option("--reference-digest", help="Accept this version of a client's operator."),
]
BackendName = Annotated[
    str | None, typer.Option(help="simulator (default), cann, replay, or module:Class of your own.")
]
Workers = Annotated[int | None, typer.Option(min=0, help="Worker processes; 0 means one per core, up to 4.")]
Recording = Annotated[Path | None, typer.Option(help="results.sqlite that --backend replay serves.")]
ToolkitFolder = Annotated[Path | None, typer.Option(help="Folder of the CANN toolkit, for --backend cann.")]


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, message, and the ``fields`` that were logged with it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the formatted line."""
        line = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging(log_format: str, level: str) -> None:
    """Write log lines to standard error.

    Args:
        log_format: ``text`` or ``json``.
        level: minimum level to log.
    """
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("npu-daemon: %(message)s")
    handler.setFormatter(JsonLines() if log_format == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"npu-daemon {__version__}")
        raise typer.Exit


@app.callback()
def _describe(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Evaluation daemon of ascend-gym."""


@dataclass(frozen=True)
class _ServeOptions:
    """What ``DaemonSettings`` are made of; ``None`` leaves a setting to file, environment and default."""

    config: Annotated[Path | None, typer.Option(help="TOML file of settings; options override it.")] = None
    bind: Annotated[
        str | None, typer.Option(help=f"tcp://HOST:PORT (or :*) or ipc:///PATH; default {DEFAULT_ADDRESS}.")
    ] = None
    backend: BackendName = None
    chip: Chip = None
    workers: Workers = None
    devices: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many of them may run candidates at a time, each at most two runs of one; 0 means all.",
        ),
    ] = None
    cache_dir: Annotated[Path | None, typer.Option(help="Default $ASCEND_GYM_CACHE.")] = None
    cache_limit_gib: Annotated[float | None, typer.Option(help="Limit of the cache in GiB; default 4.")] = (
        None
    )
    min_free_mib: Annotated[
        float | None, typer.Option(help="Free room in MiB that evaluations want to begin; default 256.")
    ] = None
    recording: Recording = None
    reference_folders: ReferenceFolders = None
    reference_digests: ReferenceDigests = None
    journal: Annotated[Path | None, typer.Option(help="File of accepted jobs; default in the cache.")] = None
    keep_jobs: Annotated[
        bool | None, typer.Option(help="Whether accepted jobs survive the daemon; default yes.")
    ] = None
    max_device_seconds: Annotated[
        float | None, typer.Option(help="Limit of the total device time, in seconds.")
    ] = None
    secret_key: Annotated[Path | None, typer.Option(help="Own key, from npu-daemon keygen.")] = None
    allowed_clients: Annotated[Path | None, typer.Option(help="Folder of clients' public keys.")] = None
    device: Devices = None
    toolkit: ToolkitFolder = None
    metrics: Annotated[str | None, typer.Option(help="HOST:PORT for Prometheus.")] = None
    log_format: Annotated[str | None, typer.Option(help="text or json.")] = None
    log_level: Annotated[str | None, typer.Option(help="debug, info or warning.")] = None
    control_fd: Annotated[int | None, typer.Option(hidden=True)] = None
    private_folder: Annotated[Path | None, typer.Option(hidden=True)] = None


@app.command()
@grouped
def serve(options: _ServeOptions) -> None:
    """Evaluate candidates for clients until SIGTERM (which lets running jobs finish) or SIGINT."""
    given = {name: value for name, value in vars(options).items() if value not in (None, [], ())}
    settings = daemon_settings(
        {
            **{name: given.get(name) for name in DaemonSettings.model_fields},
            "cann": _cann_options(options.device, options.toolkit),
        },
        environment_settings(),
        options.config,
    )
    configure_logging(settings.log_format, settings.log_level)
    failure = run_broker(settings, options.control_fd, options.private_folder)
    if failure is not None:
        raise InfrastructureError(failure)


@app.command(hidden=True)
def worker(
    connect: Annotated[str, typer.Option()],
    worker_id: Annotated[str, typer.Option()],
    scratch_folder: Annotated[Path, typer.Option()],
    options: Annotated[str, typer.Option(help="JSON.")],
) -> None:
    """Serve one broker, which starts this command.

    Args:
        connect: the broker's address for workers.
        worker_id: id of this worker.
        scratch_folder: folder for temporary files.
        options: settings of the worker, as JSON.
    """
    tempfile.tempdir = str(scratch_folder)  # the broker removes it, even after a worker that was killed
    service = WorkerOptions.model_validate_json(options).open_service(scratch_folder.parent)
    Worker(service, connect, worker_id).run()


@app.command()
def status(daemon: Address = DEFAULT_ADDRESS) -> None:
    """Print the state of a daemon as JSON."""
    _print(ask_daemon(daemon, Kind.STATUS))


@app.command()
def drain(daemon: Address = DEFAULT_ADDRESS) -> None:
    """Let running jobs finish and stop the daemon; waiting jobs stay in its journal for the next one."""
    _print(ask_daemon(daemon, Kind.DRAIN))


@app.command()
def resize(
    workers: Annotated[int, typer.Argument(min=1, metavar="WORKERS", help="Number of worker processes.")],
    daemon: Address = DEFAULT_ADDRESS,
) -> None:
    """Change the number of a daemon's workers; running jobs are not interrupted."""
    _print(ask_daemon(daemon, Kind.RESIZE, WorkerCount(workers=workers)))


@app.command()
def tenants(
    expel: Annotated[
        str | None,
        typer.Option(
            metavar="TENANT",
            help="Close its connections and end its jobs, uncharged; it may return once its key file is "
            "written again or the daemon restarted.",
        ),
    ] = None,
    daemon: Address = DEFAULT_ADDRESS,
) -> None:
    """Print the tenants of a daemon as JSON: jobs, charges and connections."""
    kind, payload = (Kind.STATUS, None) if expel is None else (Kind.EXPEL, TenantName(tenant=expel))
    status = ask_daemon(daemon, kind, payload)
    typer.echo(json.dumps([each.model_dump() for each in status.tenants], indent=2))


@app.command()
def keygen(
    name: Annotated[str, typer.Argument(help="daemon, client, or the name of a tenant.")],
    folder: Annotated[Path, typer.Option(help="Folder for the key files.")] = Path(),
) -> None:
    """Generate a key pair: NAME.key to give away, NAME.key_secret to keep."""
    public, secret = generate_keys(folder, name)
    typer.echo(
        f"{public}: the public key, to be copied to the other side\n{secret}: the secret key, to be kept"
    )


@app.command()
def doctor(
    config: Annotated[Path | None, typer.Option(help="TOML file of settings, as for serve.")] = None,
    backend: Annotated[
        str | None, typer.Option(help="Backend that must work: simulator (default) or cann.")
    ] = None,
    chip: Chip = None,
    device: Devices = None,
    toolkit: ToolkitFolder = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Also collect versions, generated files and a profile of this NPU host, without secrets.",
        ),
    ] = None,
) -> None:
    """Check this host for the simulator and for real NPUs; exit with 1 if BACKEND cannot work."""
    options = {"backend": backend, "chip": chip, "cann": _cann_options(device, toolkit)}
    settings = daemon_settings(options, environment_settings(), config)
    report = examine(settings)
    typer.echo(report.as_json() if json else report.as_text())
    if record is not None:
        from npu_daemon.cann import recording

        written = recording.record(settings, record, report.as_text())
        typer.echo(f"{len(written)} files in {record}: read them before you send them", err=True)
    sys.exit(0 if report.usable(settings.backend) else EXIT_UNUSABLE)


def _cann_options(device: list[int] | None, toolkit: Path | None) -> dict[str, Any] | None:
    given = {"devices": device or None, "toolkit": toolkit}
    return {name: value for name, value in given.items() if value is not None} or None


def _print(answer: DaemonStatus) -> None:
    typer.echo(answer.model_dump_json(indent=2))


def main() -> None:
    """Run the command line; misuse exits with 2, missing or broken infrastructure with 3."""
    configure_logging("text", "info")
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
