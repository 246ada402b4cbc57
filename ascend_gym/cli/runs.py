"""A run in its own folder, with its settings next to its journal so that anyone can resume it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from ascend_gym.cli.methods import RunSettings, Setting, factory_of
from ascend_gym.cli.models import ANSWERS_NAME, ModelAccess, opened_models
from ascend_gym.core.append_log import write_whole
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import MeasureProtocol, OpSpec
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, TIMINGS_NAME, Journal
from ascend_gym.search.ledger import BudgetLedger
from ascend_gym.search.outcome import SearchOutcome, Step
from ascend_gym.search.search_rules import SearchRules
from ascend_gym.suite.loader import load_operator
from ascend_gym.sweep.run_folders import PROVENANCE_NAME, note_session

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
    opening: AbstractContextManager[Evaluator],
    folder: Path,
    spec: OpSpec,
    settings: RunSettings,
    *,
    access: ModelAccess | None = None,
    in_flight: int = 1,
    on_event: Callable[[Step], None] | None = None,
    command: Sequence[str] | None = None,
    across_versions: bool = False,
) -> SearchOutcome:
    """Execute or resume the search that ``settings`` describe, with its journal in ``folder``.

    Args:
        opening: opens the evaluator; entered once models, method and journal are known to be usable.
        folder: existing folder.
        spec: operator of the run.
        settings: all settings that affect the outcome.
        access: how to reach models.
        in_flight: maximum number of simultaneous evaluations.
        on_event: called with each step.
        command: command that repeats the run; by default this process's command line.
        across_versions: whether to go on with another simulator or harness than the run began with.

    Raises:
        MisuseError: the folder has the journal of another search, or a model or package is not available.
    """
    ledger = BudgetLedger(settings.limits)
    protocol = MeasureProtocol(chip=settings.chip, stalls=settings.asks_language_model)
    rules = SearchRules(settings.duplicates, protocol, settings.identity(), settings.stop_after)
    factory = factory_of(settings.method)
    with (
        opened_models(settings, access or ModelAccess(), ledger, folder) as models,
        Journal(folder, across_versions=across_versions) as journal,
    ):
        _require_same_method(journal, rules)
        with opening as evaluator:
            note_session(folder, command)
            strategy = factory(Setting(spec, settings, models.online, models.offline, models.embedder))
            return run_search(
                spec, strategy, evaluator, ledger, journal, rules, in_flight=in_flight, on_event=on_event
            )


def _require_same_method(journal: Journal, rules: SearchRules) -> None:
    """Check that the file of a method from outside is the one that the run began with."""
    if not journal.records:
        return
    began, now = journal.records[0]["settings"], rules.settings
    if began.get("method") == now.get("method") and began.get("method_digest") != now.get("method_digest"):
        raise MisuseError(
            f"{now['method'].rpartition(':')[0]} has changed since the run began; "
            "put the old file back or begin a new run"
        )
