"""``ascend-gym cache``: show, verify and clear this user's cache."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from ascend_gym.cli.options import Json, note
from ascend_gym.core.config import daemon_settings as environment_settings
from ascend_gym.report.summary import to_json

if TYPE_CHECKING:
    from npu_daemon.settings import DaemonSettings

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Show, verify or clear the cache.")

_GIB = 2**30


@app.command("show")
def cache_show(as_json: Json = False) -> None:
    """Show the size of each part of the cache, and the limit."""
    from npu_daemon.cache_folder import part_sizes

    settings = _settings()
    parts = part_sizes(settings.cache_dir)
    if as_json:
        document = {
            "folder": str(settings.cache_dir),
            "limit_bytes": settings.cache_limit_bytes,
            "parts": {part.name: {"entries": part.entries, "size_bytes": part.size_bytes} for part in parts},
        }
        typer.echo(to_json(document))
        return
    for part in parts:
        typer.echo(f"{part.name:20} {part.entries:6} entries {part.size_bytes / _GIB:9.3f} GiB")
    typer.echo(f"{settings.cache_dir}; limit {settings.cache_limit_gib:g} GiB for inputs, builds and results")


@app.command("clear")
def cache_clear() -> None:
    """Remove inputs, builds, results and the compiled simulator; they are recreated on demand."""
    from npu_daemon.cache_folder import clear

    folder = _settings().cache_dir
    note(f"{clear(folder) / _GIB:.3f} GiB removed from {folder}")


@app.command("verify")
def cache_verify(as_json: Json = False) -> None:
    """Read every byte; remove what is damaged, and void the results that came from it.

    What is removed is made again when it is needed. Daemons may use the cache meanwhile.
    """
    from npu_daemon.cache_check import verify_cache

    folder = _settings().cache_dir
    found = verify_cache(folder)
    if as_json:
        typer.echo(to_json({"folder": str(folder), **asdict(found)}))
        return
    for name, problem in found.damaged.items():
        typer.echo(f"{name}: {problem}")
    typer.echo(
        f"{folder}: {found.checked} folders read, {len(found.damaged)} damaged, {found.voided} results voided"
    )


def _settings() -> DaemonSettings:
    """Return the cache settings of a daemon of this user."""
    from npu_daemon.settings import daemon_settings

    return daemon_settings({}, environment_settings(), None)
