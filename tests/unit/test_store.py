"""The result store: shared by processes, and silent about what says nothing of the candidate."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import make_candidate, ok_result

from ascend_gym.core.records import Diagnostic, EvalRequest, Phase, PhaseSeconds, failed_result
from ascend_gym.core.status import Status
from npu_daemon.store import SqliteResultStore

REQUEST = EvalRequest(op_id="core/toy", folder_digest="0", candidate=make_candidate())
NEVER_STORED = {Status.INFRA_ERROR, Status.CANCELLED, Status.INVALID_REQUEST}


def test_a_stored_result_comes_back_marked_as_cached(tmp_path: Path) -> None:
    store = SqliteResultStore(tmp_path / "deep" / "results.sqlite")
    result = ok_result(REQUEST, 10.0).model_copy(update={"seconds": PhaseSeconds(build=3.0, total=3.0)})
    store.put("key", result)
    again = store.get("key")
    assert again == result.model_copy(update={"cached": True, "seconds": PhaseSeconds()})
    assert store.get("other") is None
    store.close()


def test_results_survive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    first = SqliteResultStore(path)
    first.put("key", ok_result(REQUEST, 10.0))
    first.close()
    second = SqliteResultStore(path)
    found = second.get("key")
    assert found is not None
    assert found.latency_us == pytest.approx(10.0)
    second.close()


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_only_results_about_the_candidate_are_stored(tmp_path: Path, status: Status) -> None:
    store = SqliteResultStore(tmp_path / "results.sqlite")
    store.put("key", failed_result(REQUEST, status, Diagnostic(phase=Phase.SERVICE, message="m")))
    assert (store.get("key") is None) == (status in NEVER_STORED)
    store.close()


def test_an_unreadable_row_counts_as_absent(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    store = SqliteResultStore(path)
    store.put("key", ok_result(REQUEST, 10.0))
    with sqlite3.connect(path) as other:
        other.execute("UPDATE kept_results SET result = ?", ('{"version": 0}',))
    other.close()
    assert store.get("key") is None
    store.put("key", ok_result(REQUEST, 20.0))
    assert store.get("key") is not None
    store.close()


WRITER = """
import sys
from pathlib import Path
from npu_daemon.store import SqliteResultStore
from ascend_gym.core.records import EvalResult
store = SqliteResultStore(Path(sys.argv[1]))
result = EvalResult.model_validate_json(sys.stdin.read())
for number in range(100):
    store.put(f"{sys.argv[2]}-{number}", result)
store.close()
"""


def test_processes_write_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    text = ok_result(REQUEST, 10.0).model_dump_json()
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdin=subprocess.PIPE, text=True)
        for name in ("a", "b")
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(text)
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0, 0]
    store = SqliteResultStore(path)
    assert all(store.get(f"{name}-{number}") for name in ("a", "b") for number in range(100))
    store.close()


def test_a_copy_has_the_digest_of_its_own_fields() -> None:
    """Digests are kept once computed; a copy with another value is another question."""
    assert REQUEST.digest != (other := REQUEST.model_copy(update={"op_id": "core/other"})).digest
    assert (
        other.digest == EvalRequest(op_id="core/other", folder_digest="0", candidate=make_candidate()).digest
    )
    assert REQUEST.model_copy().digest == REQUEST.digest
