"""The journal and the crash-safe file under it."""

import fcntl
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, TimeoutError

import pytest
from conftest import make_candidate, make_spec, ok_result

from ascend_gym.core.append_log import AppendLog, read_log
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import (
    DeviceInfo,
    Diagnostic,
    MeasureProtocol,
    Phase,
    PhaseSeconds,
    failed_result,
)
from ascend_gym.core.status import Status
from ascend_gym.search.journal import JOURNAL_NAME, TIMINGS_NAME, Journal, changed_files, read_journal
from ascend_gym.suite.requests import request_for

SPEC = make_spec()


def _result(candidate, latency_us=50.0, **fields):
    result = ok_result(request_for(SPEC, candidate, MeasureProtocol()), latency_us)
    return result.model_copy(update=fields)


def _write(folder, **fields):
    candidate = make_candidate(kernel="// faster")
    with Journal(folder) as journal:
        journal.header(SPEC, {"method": "best-of-n", "seed": 3})
        journal.evaluated(
            1, SPEC.baseline, Proposal(candidate, {"kind": "sample"}), _result(candidate, **fields)
        )
        journal.end(stop_reason="budget_spent")
    return (folder / JOURNAL_NAME).read_bytes()


def test_records_come_in_order_with_their_digests(tmp_path):
    _write(tmp_path)
    journal = Journal(tmp_path)
    assert [record["kind"] for record in journal.records] == ["header", "proposal", "result", "end"]
    assert [record["seq"] for record in journal.records] == [0, 1, 2, 3]
    header, proposal, result, _ = journal.records
    assert header["settings"] == {"method": "best-of-n", "seed": 3}
    assert header["baseline_digest"] == SPEC.baseline.digest
    assert proposal["candidate_digest"] == make_candidate(kernel="// faster").digest
    assert proposal["changed_files"] == {"op_kernel/toy.cpp": "// faster"}
    assert result["latency_us"] == pytest.approx(50.0)
    assert result["result"]["status"] == "ok"
    assert len({record["digest"] for record in journal.records}) == 4
    journal.close()


def test_what_differs_between_equal_runs_is_kept_beside_the_journal(tmp_path):
    device = DeviceInfo(backend="fake", chip="910B2", toolchain_digest="0", sandbox="none", host="fast")
    first = _write(tmp_path / "a", seconds=PhaseSeconds(total=1.5), cached=True, device=device)
    second = _write(tmp_path / "b", seconds=PhaseSeconds(total=9.5))
    assert first == second
    timings = json.loads((tmp_path / "a" / TIMINGS_NAME).read_text())
    assert timings["index"] == 1
    assert timings["seconds"]["total"] == 1.5
    assert timings["cached"] is True
    assert timings["device"]["host"] == "fast"


def test_a_torn_last_line_is_removed_and_writing_goes_on(tmp_path):
    whole = _write(tmp_path)
    path = tmp_path / JOURNAL_NAME
    last_line = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[: last_line + 10])
    with Journal(tmp_path) as journal:
        assert [record["kind"] for record in journal.records] == ["header", "proposal", "result"]
    _write(tmp_path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("keep", [0, 1, 200])
def test_a_journal_cut_off_anywhere_opens_with_whole_records(tmp_path, keep):
    whole = _write(tmp_path)
    (tmp_path / JOURNAL_NAME).write_bytes(whole[:keep])
    with Journal(tmp_path) as journal:
        assert len(journal.records) == whole[:keep].count(b"\n")


def test_a_changed_record_is_noticed(tmp_path):
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(_write(tmp_path).replace(b'"latency_us":50', b'"latency_us":40', 1))
    with pytest.raises(MisuseError, match=r"journal\.jsonl:3: .*was changed"):
        Journal(tmp_path)


def test_a_missing_record_is_noticed(tmp_path):
    path = tmp_path / JOURNAL_NAME
    lines = _write(tmp_path).splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(MisuseError, match=r"journal\.jsonl:2"):
        Journal(tmp_path)


def test_infinite_error_figures_can_be_written(tmp_path):
    candidate = make_candidate()
    request = request_for(SPEC, candidate, MeasureProtocol())
    infinite = {"max_abs_error": float("inf"), "max_rel_error": float("nan"), "bad_share": 1.0}
    case = {
        "case_id": "small",
        "status": "incorrect",
        "accuracy": {**infinite, "upstream_rule_passes": False},
        "diagnostics": [{"phase": "verify", "message": "wrong"}],
    }
    diagnostic = Diagnostic(phase=Phase.VERIFY, message="wrong")
    result = failed_result(request, Status.INCORRECT, diagnostic)
    result = type(result).model_validate({**result.model_dump(), "cases": [case]})
    with Journal(tmp_path) as journal:
        journal.evaluated(0, candidate, Proposal(candidate, {}), result)
    with Journal(tmp_path) as journal:
        accuracy = journal.records[1]["result"]["cases"][0]["accuracy"]
    assert accuracy["max_abs_error"] == "Infinity"
    assert accuracy["bad_share"] == 1.0


def test_changed_files_lists_both_sides():
    after = make_candidate(tiling="// t", kernel="// k")
    assert changed_files(SPEC.baseline, after) == {"op_host/toy.cpp": "// t", "op_kernel/toy.cpp": "// k"}
    assert changed_files(after, after) == {}


@pytest.mark.parametrize(("content", "complaint"), [(b"{}\nnot json\n", "log:2"), (b"[1]\n", "got list")])
def test_a_file_that_is_no_log_is_refused(tmp_path, content, complaint):
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(MisuseError, match=complaint):
        AppendLog(tmp_path / "log")


def test_append_log_keeps_text_as_it_is_and_keys_sorted(tmp_path):
    with AppendLog(tmp_path / "deep" / "log") as log:
        log.append({"b": "块\n", "a": 1})
    assert (tmp_path / "deep" / "log").read_text(encoding="utf-8") == '{"a":1,"b":"块\\n"}\n'
    with AppendLog(tmp_path / "deep" / "log") as log:
        assert log.records == [{"a": 1, "b": "块\n"}]
        assert log.torn_bytes == 0


def test_a_journal_has_one_writer_at_a_time(tmp_path):
    with Journal(tmp_path) as journal:
        journal.header(SPEC, {"seed": 1})
        with pytest.raises(MisuseError, match="another process is writing it"):
            Journal(tmp_path)
        assert [record["kind"] for record in read_journal(tmp_path)] == ["header"]
    with Journal(tmp_path) as journal:
        assert len(journal.records) == 1


MEASURED_BY = {"chip": "910B2", "convention": "l2_cold", "harness": "2", "toolchain": "a"}


def _broken_off(folder, measured_by):
    with Journal(folder) as journal:
        journal.header(SPEC, {"seed": 1, "protocol": {"chip": "910B2"}}, measured_by)
        journal.evaluated(0, SPEC.baseline, Proposal(SPEC.baseline, {}), _result(SPEC.baseline))


def _resumed(folder, measured_by, settings=None, **options):
    faster = make_candidate(kernel="// faster")
    with Journal(folder, **options) as journal:
        journal.header(SPEC, settings or {"seed": 1, "protocol": {"chip": "910B2"}}, measured_by)
        baseline = journal.recorded(0) or _result(SPEC.baseline)
        journal.evaluated(0, SPEC.baseline, Proposal(SPEC.baseline, {}), baseline)
        journal.evaluated(1, SPEC.baseline, Proposal(faster, {}), _result(faster))
    return [record["kind"] for record in read_journal(folder)]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"toolchain": "b"}, "toolchain was a, is b"),
        ({"harness": "3"}, "harness was 2, is 3"),
        (
            {"chip": "910B4", "convention": "warm"},
            "chip was 910B2, is 910B4; convention was l2_cold, is warm",
        ),
    ],
)
def test_a_run_that_something_else_measured_is_not_resumed_in_silence(tmp_path, changed, said):
    _broken_off(tmp_path, MEASURED_BY)
    before = (tmp_path / JOURNAL_NAME).read_bytes()
    with pytest.raises(MisuseError, match=rf"{said}\. Resume .*--across-versions"):
        _resumed(tmp_path, MEASURED_BY | changed)
    assert (tmp_path / JOURNAL_NAME).read_bytes() == before
    kinds = ["header", "proposal", "result"]
    assert _resumed(tmp_path, MEASURED_BY | changed, across_versions=True) == [
        *kinds,
        "continued",
        *kinds[1:],
    ]
    assert read_journal(tmp_path)[3]["measured_by"] == MEASURED_BY | changed
    with pytest.raises(MisuseError, match="was measured otherwise"):  # what it went on with counts now
        _resumed(tmp_path, MEASURED_BY)
    assert len(_resumed(tmp_path, MEASURED_BY | changed)) == 6


def test_a_run_of_an_earlier_release_goes_on_when_asked_to(tmp_path):
    _broken_off(tmp_path, None)
    with pytest.raises(MisuseError, match="toolchain was not recorded, is a"):
        _resumed(tmp_path, MEASURED_BY)
    assert _resumed(tmp_path, MEASURED_BY, across_versions=True)[3] == "continued"


def test_settings_are_named_that_differ_and_nothing_continues_under_others(tmp_path):
    _broken_off(tmp_path, MEASURED_BY)
    other = {"seed": 2, "protocol": {"chip": "910B2", "repeats": 3}}
    with pytest.raises(MisuseError, match="repeats was not recorded, is 3; seed was 1, is 2"):
        _resumed(tmp_path, MEASURED_BY, other, across_versions=True)


def test_a_run_that_measured_nothing_yet_begins_with_what_measures_now(tmp_path):
    with Journal(tmp_path) as journal:
        journal.header(SPEC, {"seed": 1, "protocol": {"chip": "910B2"}}, MEASURED_BY)
    assert "continued" not in _resumed(tmp_path, MEASURED_BY | {"toolchain": "b"})
    assert read_journal(tmp_path)[0]["measured_by"]["toolchain"] == "b"


def test_reading_a_journal_changes_nothing(tmp_path):
    assert read_journal(tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
    with Journal(tmp_path) as journal:
        journal.header(SPEC, {})
    path = tmp_path / JOURNAL_NAME
    torn = path.read_bytes() + b'{"kind":"prop'
    path.write_bytes(torn)
    assert len(read_journal(tmp_path)) == 1
    assert path.read_bytes() == torn
    path.write_bytes(torn.replace(b'"version":2', b'"version":3'))
    with pytest.raises(MisuseError, match="changed"):
        read_journal(tmp_path)


@pytest.mark.parametrize("timing", [b"{}", b'{"seconds":1,"device":2,"cached":3,"device_seconds":4}'])
def test_damaged_timings_are_named(tmp_path, timing):
    request = request_for(SPEC, SPEC.baseline, MeasureProtocol())
    result = failed_result(request, Status.BUILD_ERROR, Diagnostic(phase=Phase.RUN_KERNEL, message="no"))
    with Journal(tmp_path) as journal:
        journal.evaluated(0, SPEC.baseline, Proposal(SPEC.baseline, {}), result)
    (tmp_path / TIMINGS_NAME).write_bytes(timing + b"\n")
    with pytest.raises(MisuseError, match=f"{TIMINGS_NAME}:1: damaged"):
        Journal(tmp_path)


def test_a_log_that_cannot_be_opened_is_misuse(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MisuseError, match="cannot be written"):
        AppendLog(tmp_path / "file" / "log")


def test_a_full_disk_is_a_fault_of_the_infrastructure_and_the_log_stays_readable(tmp_path):
    path = tmp_path / "log"
    script = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from ascend_gym.core.errors import InfrastructureError\n"
        "from ascend_gym.core.append_log import AppendLog\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))\n"
        f"with AppendLog(Path({str(path)!r})) as log:\n"
        "    log.append({'a': 'whole'})\n"
        "    for _ in range(2):\n"
        "        try:\n            log.append({'a': 'x' * 99})\n"
        "        except InfrastructureError as error:\n            print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    complaints = ended.stdout.splitlines()
    assert "cannot be written" in complaints[0]
    assert "closed" in complaints[1]
    assert path.stat().st_size == 40
    with AppendLog(path) as log:
        assert (log.records, log.torn_bytes) == ([{"a": "whole"}], 40 - len(b'{"a":"whole"}\n'))


def test_opening_waits_for_a_line_that_another_process_is_writing(tmp_path):
    path = tmp_path / "log"
    with ThreadPoolExecutor(1) as pool, path.open("ab", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(b'{"a":')
        opened = pool.submit(AppendLog, path)
        with pytest.raises(TimeoutError):
            opened.result(0.1)
        other.write(b"1}\n")
        fcntl.flock(other, fcntl.LOCK_UN)
        with opened.result(20) as log:
            assert (log.records, log.torn_bytes) == ([{"a": 1}], 0)


def test_two_logs_may_append_to_one_file(tmp_path):
    with AppendLog(tmp_path / "log") as one, AppendLog(tmp_path / "log") as other:
        for number in range(4):
            (one, other)[number % 2].append({"n": number})
    assert [record["n"] for record in read_log(tmp_path / "log")] == [0, 1, 2, 3]
