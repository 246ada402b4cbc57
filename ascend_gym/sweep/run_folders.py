"""The run folders of a sweep, which its driver writes from the updates of hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.whole_file import write_whole
from ascend_gym.search.journal import JOURNAL_NAME, TIMINGS_NAME
from ascend_gym.sweep.jobs import FilePart, Job
from ascend_gym.sweep.provenance import PROVENANCE_NAME

SETTINGS_NAME = "run.json"
LOG_NAMES = (JOURNAL_NAME, TIMINGS_NAME, "answers.jsonl", PROVENANCE_NAME)


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

    def folder(self, job: Job) -> Path:
        """Return the folder of a run."""
        return self._root / job.job_id

    def begin(self, job: Job) -> None:
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

    def known(self, job: Job) -> dict[str, bytes]:
        """Return the files of a run by name, complete lines only."""
        files = {name: self.folder(job) / name for name in LOG_NAMES}
        texts = {name: path.read_bytes() for name, path in files.items() if path.exists()}
        return {name: text[: text.rfind(b"\n") + 1] for name, text in texts.items()}

    def has_begun(self, job: Job) -> bool:
        """Return whether there is a non-empty journal."""
        return bool(self.known(job).get(JOURNAL_NAME))

    def add(self, job: Job, parts: Iterable[FilePart]) -> None:
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
