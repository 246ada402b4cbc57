"""The record of accepted jobs: what a killed broker leaves to the next one."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from broker_machine import request_of, result_of

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.records import Charge
from npu_daemon.broker import journal as journal_module
from npu_daemon.broker.events import DropJob, Name, Restore, SaveAnswer, SavedCharge, SavedJob, SaveJob
from npu_daemon.broker.journal import JobJournal

FIRST, SECOND = Name(b"\x00client", "r1"), Name(b"\x00client", "r2")
REQUEST = request_of()
CHARGE = Charge(evaluations=1, device_seconds=0.5)
ANSWER = SaveAnswer(FIRST, result_of(REQUEST), "alice", CHARGE)


def save(name: Name) -> SaveJob:
    return SaveJob(SavedJob(name, "alice", REQUEST))


def left_in(path: Path) -> Restore:
    journal = JobJournal(path)
    try:
        return journal.load()
    finally:
        journal.close()


def test_an_empty_journal_leaves_nothing(tmp_path: Path) -> None:
    assert left_in(tmp_path / "deep" / "jobs.sqlite") == Restore()


def test_what_was_accepted_answered_and_charged_is_left(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    journal = JobJournal(path)
    journal.write([save(FIRST), save(SECOND)])
    journal.write([ANSWER])
    journal.close()
    expected = Restore(
        (SavedJob(SECOND, "alice", REQUEST),),
        ((FIRST, ANSWER.result),),
        (SavedCharge(FIRST, "alice", CHARGE),),
    )
    assert left_in(path) == expected


def test_a_request_is_charged_once_whatever_is_written(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    journal = JobJournal(path)
    for _ in range(2):
        journal.write([save(FIRST), ANSWER])
    journal.write([save(SECOND), DropJob(SECOND)])
    journal.close()
    left = left_in(path)
    assert left.jobs == ()
    assert left.charges == (SavedCharge(FIRST, "alice", CHARGE),)


def test_the_log_is_moved_into_the_file_whatever_fills_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by jobs that nobody waits for in the end, so that it begins again instead of growing."""
    monkeypatch.setattr(journal_module, "_CHECKPOINT_BYTES", 1 << 18)
    path = tmp_path / "jobs.sqlite"
    journal = JobJournal(path)
    log, before_bytes = tmp_path / "jobs.sqlite-wal", path.stat().st_size
    written_bytes = 0
    while path.stat().st_size == before_bytes or log.stat().st_size >= written_bytes:
        written_bytes += 2 * 4096  # at least a page for each record
        journal.write([save(SECOND)])
        journal.write([DropJob(SECOND)])
        assert written_bytes < 1 << 28, "the log only grows"
    journal.close()
    assert left_in(path) == Restore()


def test_a_transaction_that_fails_leaves_nothing_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    journal = JobJournal(path)
    journal._database.execute("DROP TABLE answered_jobs")
    with pytest.raises(InfrastructureError, match="cannot be written"):
        journal.write([save(SECOND), save(FIRST), ANSWER])
    journal.close()
    assert left_in(path) == Restore()


def test_a_journal_belongs_to_one_broker_at_a_time(tmp_path: Path) -> None:
    journal = JobJournal(tmp_path / "jobs.sqlite")
    with pytest.raises(MisuseError, match="--journal"):
        JobJournal(tmp_path / "jobs.sqlite")
    journal.close()
    JobJournal(tmp_path / "jobs.sqlite").close()


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(InfrastructureError, match="cannot be used"):
        JobJournal(path)


def test_old_answers_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "KEPT_ANSWERS", 3)
    monkeypatch.setattr(journal_module, "_PRUNE_EVERY", 5)
    path = tmp_path / "jobs.sqlite"
    journal = JobJournal(path)
    for number in range(10):
        name = Name(b"c", f"r{number}")
        journal.write([save(name), SaveAnswer(name, ANSWER.result, "alice", None)])
    journal.close()
    assert [name.request_id for name, _ in left_in(path).answers] == ["r7", "r8", "r9"]


def test_charges_are_remembered_for_longer_than_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "KEPT_ANSWERS", 2)
    monkeypatch.setattr(journal_module, "KEPT_CHARGES", 4)
    monkeypatch.setattr(journal_module, "_PRUNE_EVERY", 3)
    path = tmp_path / "jobs.sqlite"
    journal = JobJournal(path)
    for number in range(9):
        name = Name(b"c", f"r{number}")
        journal.write([save(name), SaveAnswer(name, ANSWER.result, "alice", CHARGE)])
    journal.close()
    left = left_in(path)
    assert [name.request_id for name, _ in left.answers] == ["r7", "r8"]
    assert [charge.name.request_id for charge in left.charges] == ["r5", "r6", "r7", "r8"]


def test_a_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE jobs (number INTEGER)")
    with pytest.raises(InfrastructureError, match=r"another version.* remove it, or .* --journal"):
        JobJournal(path)


KILLED = """
import os, signal, sys
from pathlib import Path
from test_job_journal import ANSWER, FIRST, SECOND, save
from npu_daemon.broker.journal import JobJournal
journal = JobJournal(Path(sys.argv[1]))
journal.write([save(FIRST), save(SECOND)])
journal.write([ANSWER])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_written_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    code = f"import sys; sys.path[:0] = {folders}\n{KILLED}"
    ended = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    left = left_in(path)
    assert [job.name for job in left.jobs] == [SECOND]
    assert [charge.name for charge in left.charges] == [FIRST]
