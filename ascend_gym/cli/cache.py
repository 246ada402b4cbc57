"""``ascend-gym cache``: show and clear this user's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ascend_gym.cli.options import Json, note
from ascend_gym.core.config import daemon_settings as environment_settings
from ascend_gym.report.summary import to_json

if TYPE_CHECKING:
    from npu_daemon.settings import DaemonSettings

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Show or clear the cache.")

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


def _settings() -> DaemonSettings:
    """Return the cache settings of a daemon of this user."""
    from npu_daemon.settings import daemon_settings

    return daemon_settings({}, environment_settings(), None)
