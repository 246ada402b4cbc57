"""A run in its own folder, with its settings next to its journal so that anyone can resume it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ascend_gym.cli.methods import RunSettings, Setting, strategy_of
from ascend_gym.cli.models import ANSWERS_NAME, ModelAccess, opened_models
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import MeasureProtocol, OpSpec
from ascend_gym.core.whole_file import write_whole
from ascend_gym.search.driver import SearchRules, run_search
from ascend_gym.search.journal import JOURNAL_NAME, TIMINGS_NAME, Journal
from ascend_gym.search.ledger import BudgetLedger
from ascend_gym.search.llm import OFFLINE_MODEL
from ascend_gym.search.outcome import SearchOutcome, Step
from ascend_gym.suite.loader import load_operator
from ascend_gym.sweep.provenance import PROVENANCE_NAME, note_session

SETTINGS_NAME = "run.json"


def write_settings(folder: Path, settings: RunSettings) -> None:
    """Write the settings of the run into its folder: all of them or, after a crash, none."""
    write_whole(folder / SETTINGS_NAME, settings_text(settings))


def settings_text(settings: RunSettings) -> bytes:
    """Return settings as they are kept in a run's folder."""
    return f"{settings.model_dump_json(indent=2)}\n".encode()


def discard_unused(folder: Path) -> bool:
    """Remove the folder of a run that ended before it began, with only settings in it; say whether it did."""
    empty_logs = {JOURNAL_NAME, TIMINGS_NAME, ANSWERS_NAME}
    held = list(folder.iterdir())
    unused = all(
        path.name in (SETTINGS_NAME, PROVENANCE_NAME) or (path.name in empty_logs and not path.stat().st_size)
        for path in held
    )
    if unused:
        for path in held:
            path.unlink()
        folder.rmdir()
    return unused


def read_settings(folder: Path) -> RunSettings:
    """Read the settings of the run in a folder.

    Raises:
        MisuseError: the folder has none.
    """
    path = folder / SETTINGS_NAME
    try:
        return RunSettings.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise MisuseError(f"{folder} is not the folder of a run that can be resumed: {error}") from error


def operator_of(settings: RunSettings) -> OpSpec:
    """Load the operator of a run."""
    return load_operator(settings.operator, op_dir=Path(settings.op_dir) if settings.op_dir else None)


def run_in_folder(
    folder: Path,
    spec: OpSpec,
    settings: RunSettings,
    evaluator: Evaluator,
    *,
    access: ModelAccess | None = None,
    in_flight: int = 1,
    on_event: Callable[[Step], None] | None = None,
    command: Sequence[str] | None = None,
) -> SearchOutcome:
    """Execute or resume the search that ``settings`` describe, with its journal in ``folder``.

    Args:
        folder: existing folder.
        spec: operator of the run.
        settings: all settings that affect the outcome.
        evaluator: evaluator; stays open.
        access: how to reach models.
        in_flight: maximum number of simultaneous evaluations.
        on_event: called with each step.
        command: command that repeats the run; by default this process's command line.

    Raises:
        MisuseError: the folder has the journal of another search, or a model or package is not available.
    """
    ledger = BudgetLedger(settings.limits)
    protocol = MeasureProtocol(chip=settings.chip, stalls=settings.model != OFFLINE_MODEL)
    with (
        opened_models(settings, access or ModelAccess(), ledger, folder) as models,
        Journal(folder) as journal,
    ):
        note_session(folder, command)
        return run_search(
            spec,
            strategy_of(Setting(spec, settings, models.online, models.offline, models.embedder)),
            evaluator,
            ledger,
            journal,
            SearchRules(settings.duplicates, protocol, settings.identity()),
            in_flight=in_flight,
            on_event=on_event,
        )
