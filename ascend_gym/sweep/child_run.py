"""A run in a child process, on whatever host: its files and steps are handed on as they come.

A process of its own, because OpenEvolve needs a main thread, a crash must take down one run only, and memory
is given back. The child ends when its standard input is closed, so that a killed parent leaves none behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import tempfile
from pathlib import Path

from ascend_gym.core.own_python import own_python_command
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.sweep.jobs import Ending, FilePart, RunEnd, RunStep, RunTask, Update
from ascend_gym.sweep.run_folders import LOG_NAMES, SETTINGS_NAME

_READ_BYTES = 1 << 16
_QUOTED_BYTES = 2000
_STOP_TIMEOUT_S = 10.0
_EXIT_MISUSE = 2


class ChildRun:
    """Makes one run, or goes on with it, in a scratch folder.

    Args:
        task: the run.
        host: where this is; by default the name of the host.
    """

    def __init__(self, task: RunTask, host: str | None = None) -> None:
        self._task, self._host = task, host or socket.gethostname()
        self._scratch = tempfile.TemporaryDirectory(prefix="ascend-gym-run-", ignore_cleanup_errors=True)
        self._folder = Path(self._scratch.name)
        self._sent_bytes = {name: len(data) for name, data in task.files.items()}
        for name, data in {**task.files, SETTINGS_NAME: task.job.settings}.items():
            (self._folder / name).write_bytes(data)
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - kept open: the child writes, _said reads
        daemon = ["--daemon", task.daemon] if task.daemon is not None else []
        self._process = subprocess.Popen(
            [*own_python_command(task.module), str(self._folder), *daemon, *task.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            start_new_session=True,
        )
        self._ended_fd = os.pidfd_open(self._process.pid)
        self._line = b""
        self._end: RunEnd | None = None

    def updates(self, timeout_s: float) -> Update:
        """Return what is new, waiting up to ``timeout_s`` for it. After its end the run is gone."""
        assert self._process.stdout is not None, "it is a pipe"
        stdout = self._process.stdout.fileno()
        ready = select.select([stdout, self._ended_fd], [], [], timeout_s)[0]
        steps: list[RunStep] = []
        while stdout in ready and (data := os.read(stdout, _READ_BYTES)):
            self._take(data, steps)
            ready = [*select.select([stdout], [], [], 0)[0], *(fd for fd in ready if fd == self._ended_fd)]
        end = self._ended() if ready else None
        parts = self._new_parts(everything=end is not None)
        if end is not None:
            self.close()
        return Update(self._task.job.job_id, self._task.attempt, self._host, parts, tuple(steps), end)

    def stop(self) -> None:
        """Ask the run to stop; ``updates`` tells its end."""
        assert self._process.stdin is not None, "it is a pipe"
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def close(self) -> None:
        """End the run and remove its scratch folder."""
        self.stop()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None, "it is a pipe"
        self._process.stdout.close()
        os.close(self._ended_fd)
        self._messages.close()
        self._scratch.cleanup()

    def _take(self, data: bytes, steps: list[RunStep]) -> None:
        """Take in what the child has written: a JSON line for each step, and one for the end."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if "ending" in event:
                self._end = RunEnd(Ending(event["ending"]), event["message"])
            else:
                steps.append(RunStep(**event))

    def _ended(self) -> RunEnd:
        """Return how the child ended: by its own account if it gave one."""
        try:
            status = self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        if self._end is not None:
            return self._end
        ending = Ending.REFUSED if status == _EXIT_MISUSE else Ending.LOST
        return RunEnd(ending, f"exit status {status}: {self._said()}")

    def _said(self) -> str:
        written_bytes = os.fstat(self._messages.fileno()).st_size
        start = max(0, written_bytes - _QUOTED_BYTES)
        return os.pread(self._messages.fileno(), _QUOTED_BYTES, start).decode(errors="replace").strip()

    def _new_parts(self, *, everything: bool) -> tuple[FilePart, ...]:
        """Return what was added to the logs, and at the end every other file too.

        The journal is read first and handed on last, so that no result comes without its timing and answer.
        """
        journal = self._new_part(JOURNAL_NAME)
        others = [self._new_part(name) for name in LOG_NAMES if name != JOURNAL_NAME]
        parts = [part for part in (*others, journal) if part is not None]
        return (*parts, *(self._results() if everything else ()))

    def _new_part(self, name: str) -> FilePart | None:
        path = self._folder / name
        if not path.exists():
            return None
        sent_bytes, size_bytes = self._sent_bytes.get(name, 0), path.stat().st_size
        offset_bytes = sent_bytes if size_bytes >= sent_bytes else 0  # a resumed journal may be cut
        with path.open("rb") as file:
            file.seek(offset_bytes)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and offset_bytes == sent_bytes:
            return None
        self._sent_bytes[name] = offset_bytes + len(whole)
        return FilePart(name, offset_bytes, whole)

    def _results(self) -> list[FilePart]:
        known = {*LOG_NAMES, SETTINGS_NAME}
        files = sorted(path for path in self._folder.rglob("*") if path.is_file())
        named = [(path.relative_to(self._folder).as_posix(), path) for path in files]
        return [FilePart(name, 0, path.read_bytes()) for name, path in named if name not in known]
