"""The ``ascend-gym`` command: parses arguments, composes the parts, and maps outcomes to exit statuses.

Exit status 0: the command did its job, even if the candidate is bad. 2: misuse. 3: broken infrastructure.
130: interrupted by SIGINT, 143: by SIGTERM; results so far are saved and printed.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import suppress
from typing import Annotated

import typer

from ascend_gym import __version__
from ascend_gym.core.own_python import find_in_own_folders

find_in_own_folders()  # before anything below is imported from agents or baselines

from ascend_gym.cli import (  # noqa: E402
    bank,
    cache,
    doctor,
    evaluate,
    models,
    optimize,
    profile,
    report,
    results,
    suite,
    sweep,
    train,
)
from ascend_gym.cli.options import (  # noqa: E402
    EXIT_INFRASTRUCTURE,
    EXIT_INTERRUPTED,
    EXIT_MISUSE,
    SectionedCommand,
    note,
)
from ascend_gym.core.errors import InfrastructureError, MisuseError  # noqa: E402
from ascend_gym.core.interrupts import interruptible  # noqa: E402
from ascend_gym.core.status import Status  # noqa: E402
from ascend_gym.core.text import limit_hint  # noqa: E402
from ascend_gym.report.summary import to_json  # noqa: E402

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Optimise Ascend C operators.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(suite.app, name="suite")
app.add_typer(bank.app, name="bank")
app.add_typer(cache.app, name="cache")
app.add_typer(models.app, name="llm")
app.add_typer(results.app, name="runs")
app.command("evaluate")(evaluate.evaluate)
app.command("optimize", cls=SectionedCommand)(optimize.optimize)
app.command("resume", cls=SectionedCommand)(optimize.resume)
app.command("train")(train.train)
app.command("sweep", cls=SectionedCommand)(sweep.sweep)
app.command("compare")(results.compare)
app.command("leaderboard")(results.leaderboard)
app.command("profile")(profile.profile)
app.command("report")(report.report)
app.command("doctor")(doctor.doctor)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ascend-gym {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Optimise Ascend C operators."""


def main() -> None:
    """Run the command line and exit with its status."""
    with interruptible() as interrupts:
        try:
            _run()
        except SystemExit as ended:
            if ended.code == EXIT_INTERRUPTED:
                raise SystemExit(interrupts.exit_status) from ended
            raise


def _run() -> None:
    try:
        app()
    except MisuseError as error:
        _fail(error, Status.INVALID_REQUEST, EXIT_MISUSE)
    except InfrastructureError as error:
        _fail(error, Status.INFRA_ERROR, EXIT_INFRASTRUCTURE)
    except (OSError, sqlite3.Error) as error:  # a full disk, say
        failure = InfrastructureError(f"{error}{limit_hint(str(error))}")
        _fail(failure, Status.INFRA_ERROR, EXIT_INFRASTRUCTURE)


def _fail(error: Exception, status: Status, exit_status: int) -> None:
    """Report why a command ended before it could print its result."""
    with suppress(OSError):
        note(f"ascend-gym: {error}")
    try:
        if "--json" in sys.argv[1:]:  # programs that read the document learn the reason from it too
            typer.echo(to_json({"status": status.value, "message": str(error)}))
        sys.stdout.flush()
    except OSError:  # Python would try it again at the end, and complain in its own way
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(exit_status) from error
