"""The cache: what goes when it takes too much room, and how it is shown and emptied."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from broker_machine import request_of
from conftest import ok_result
from fake_backend import FakeBackend, make_operator, make_request

from ascend_gym.core.config import ENV_CACHE
from ascend_gym.core.errors import InfrastructureError, MisuseError
from npu_daemon import cache_folder
from npu_daemon import store as store_module
from npu_daemon.cache_folder import IN_USE_S, clear, entry_lock, in_use, make_room, part_sizes
from npu_daemon.case_data import GuardedFile, UnchangedFiles
from npu_daemon.service import open_service
from npu_daemon.store import SqliteResultStore

OLD_S = 2 * IN_USE_S


def entry(cache: Path, name: str, size_bytes: int, age_s: float = OLD_S) -> Path:
    folder = cache / name
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "data").write_bytes(bytes(size_bytes))
    then_s = time.time() - age_s
    os.utime(folder, (then_s, then_s))
    return folder


def data_in(cache: Path) -> set[str]:
    return {str(path.parents[1].relative_to(cache)) for path in cache.rglob("data")}


def test_the_longest_unused_go_first_whatever_they_are(tmp_path: Path) -> None:
    entry(tmp_path, "case_data/old", 100_000, 3 * OLD_S)
    entry(tmp_path, "builds/kernel/ab/older", 100_000, 4 * OLD_S)
    entry(tmp_path, "cann/opp/ab/oldest", 100_000, 5 * OLD_S)
    entry(tmp_path, "case_data/new", 100_000, OLD_S)
    for _ in range(2):
        make_room(tmp_path, 250_000)
        assert data_in(tmp_path) == {"case_data/old", "case_data/new"}


def test_results_count_and_what_has_no_limit_stays(tmp_path: Path) -> None:
    entry(tmp_path, "toolchain/digest", 500_000)
    entry(tmp_path, "jobs/daemon", 500_000)
    entry(tmp_path, "case_data/inputs", 100_000)
    (tmp_path / "results.sqlite").write_bytes(bytes(200_000))
    make_room(tmp_path, 350_000)
    assert data_in(tmp_path) == {"toolchain/digest", "jobs/daemon", "case_data/inputs"}
    make_room(tmp_path, 250_000)
    assert data_in(tmp_path) == {"toolchain/digest", "jobs/daemon"}
    assert (tmp_path / "results.sqlite").exists()


def test_what_is_in_use_stays_even_when_there_is_no_room(tmp_path: Path) -> None:
    entry(tmp_path, "case_data/used", 1000, 0.0)
    entry(tmp_path, "case_data/unused", 1000)
    with entry_lock(entry(tmp_path, "case_data/looked at", 1000), fcntl.LOCK_SH):
        make_room(tmp_path, 0)
    assert data_in(tmp_path) == {"case_data/used", "case_data/looked at"}
    make_room(tmp_path, 0)
    assert data_in(tmp_path) == {"case_data/used"}


def test_what_comes_into_use_while_room_is_made_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = entry(tmp_path, "case_data/used", 1000)
    entry(tmp_path, "case_data/unused", 1000)
    when_used = cache_folder._used_s

    def used_just_behind(path: Path) -> float:
        found_s = when_used(path)
        if path == used:
            os.utime(path)
        return found_s

    monkeypatch.setattr(cache_folder, "_used_s", used_just_behind)
    make_room(tmp_path, 0)
    assert data_in(tmp_path) == {"case_data/used"}


def test_a_file_that_vanishes_is_no_fault_of_a_confined_candidate(tmp_path: Path) -> None:
    file = GuardedFile("input 'x'", tmp_path / "x", "digest")
    with pytest.raises(InfrastructureError, match="was removed while in use"):
        UnchangedFiles().changed([file], confined=True)
    assert UnchangedFiles().changed([file], confined=False) is not None


def test_a_folder_that_vanishes_while_it_is_measured_counts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing = entry(tmp_path, "case_data/changing", 100_000)
    entry(tmp_path, "case_data/other", 1000, 9 * OLD_S)
    scandir = os.scandir

    def renamed_by_another(path: object) -> object:
        if str(path) == str(changing / "deep"):
            (changing / "deep").rename(tmp_path / "renamed")
        return scandir(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", renamed_by_another)
    make_room(tmp_path, 50_000)
    assert sorted(path.name for path in (tmp_path / "case_data").iterdir()) == ["changing", "other"]


def test_evaluations_keep_the_cache_within_its_limit(tmp_path: Path) -> None:
    spec = make_operator(tmp_path / "double_it")
    cache = tmp_path / "cache"
    old = [entry(cache, f"builds/kernel/ab/{number}", 1000, OLD_S + number) for number in range(3)]
    size_bytes = sum(each.size_bytes for each in part_sizes(cache))
    service = open_service(FakeBackend(tmp_path / "fake"), cache, limit_bytes=size_bytes)
    service.answer(make_request(spec))
    service.close()
    assert [each.exists() for each in old] != [True, True, True], "the inputs took the room of builds"
    assert [each.exists() for each in old] == sorted((each.exists() for each in old), reverse=True)


def test_the_result_store_removes_its_oldest(tmp_path: Path) -> None:
    request = request_of()
    size_bytes = len(ok_result(request, 1.0).model_dump_json())
    store = SqliteResultStore(tmp_path / "r.sqlite", limit_bytes=8 * size_bytes)
    for number in range(store_module._PRUNE_EVERY):
        store.put(f"key {number}", ok_result(request, 1.0))
    found = [number for number in range(store_module._PRUNE_EVERY) if store.get(f"key {number}")]
    assert found == list(range(store_module._PRUNE_EVERY - 6, store_module._PRUNE_EVERY))
    store.close()


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENV_CACHE, str(tmp_path / "cache"))
    for name in ("case_data/a", "case_data/b", "builds/host/ab/c", "toolchain/d", "jobs/kept"):
        entry(tmp_path / "cache", name, 2**20)
    (tmp_path / "cache" / "examples" / "ab").mkdir(parents=True)
    kept = ("imported.json", "builds/host/ab/c0.lock")
    for name in ("results.sqlite", "results.sqlite-wal", "examples/ab/program", *kept):
        (tmp_path / "cache" / name).write_bytes(bytes(1000))
    return tmp_path / "cache"


def test_the_cache_is_shown(run: Callable[..., tuple[int, str, str]], filled: Path) -> None:
    status, printed, _ = run("cache", "show", "--json")
    document = json.loads(printed)
    assert (status, document["folder"], document["limit_bytes"]) == (0, str(filled), 4 * 2**30)
    assert {name: part["entries"] for name, part in document["parts"].items()} == {
        "inputs": 2,
        "builds": 1,
        "builds for NPUs": 0,
        "results": 2,
        "simulator": 1,
        "programs of examples": 1,
        "imported examples": 0,
    }
    assert 2 * 2**20 <= document["parts"]["inputs"]["size_bytes"] < 2 * 2**20 + 50_000
    status, printed, _ = run("cache", "show")
    assert status == 0
    assert "inputs                    2 entries     0.002 GiB" in printed
    assert f"{filled}; limit 4 GiB" in printed


def test_the_cache_is_emptied_of_what_can_be_made_again(
    run: Callable[..., tuple[int, str, str]], filled: Path
) -> None:
    status, _, messages = run("cache", "clear")
    assert (status, messages) == (0, f"0.004 GiB removed from {filled}\n")
    assert data_in(filled) == {"jobs/kept"}
    left = sorted(path.name for path in filled.rglob("*") if path.is_file() and path.name != "data")
    assert left == ["c0.lock", "imported.json", "in-use"]
    assert run("cache", "clear")[0] == 0


def test_a_cache_that_a_daemon_uses_is_not_emptied(filled: Path) -> None:
    with in_use(filled), in_use(filled), pytest.raises(MisuseError, match="a daemon uses the cache"):
        clear(filled)
    assert len(data_in(filled)) == 5
    assert clear(filled) > 4 * 2**20


def test_a_cache_that_is_not_there_is_empty(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(ENV_CACHE, str(tmp_path / "nothing"))
    assert run("cache", "show")[0] == run("cache", "clear")[0] == 0
    assert not (tmp_path / "nothing").exists()
