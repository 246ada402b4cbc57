"""Folders that are removed when they take too much room."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from broker_machine import request_of
from conftest import ok_result

from npu_daemon import store as store_module
from npu_daemon.folder_cache import IN_USE_S, evict, note_use
from npu_daemon.store import SqliteResultStore


def entry(parent: Path, name: str, size_bytes: int, age_s: float) -> Path:
    folder = parent / name
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "data").write_bytes(bytes(size_bytes))
    then_s = time.time() - age_s
    os.utime(folder, (then_s, then_s))
    return folder


def names(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir())


def test_the_longest_unused_go_first_until_there_is_room(tmp_path: Path) -> None:
    for name, age_s in (("new", 0.0), ("old", 3 * IN_USE_S), ("older", 4 * IN_USE_S), ("kept", 9 * IN_USE_S)):
        entry(tmp_path, name, 100_000, age_s)
    evict(tmp_path.iterdir(), 350_000, keep=tmp_path / "kept")
    assert names(tmp_path) == ["kept", "new", "old"]
    evict(tmp_path.iterdir(), 350_000, keep=tmp_path / "kept")
    assert names(tmp_path) == ["kept", "new", "old"]


def test_what_is_in_use_stays_even_when_there_is_no_room(tmp_path: Path) -> None:
    used = entry(tmp_path, "used", 1000, 2 * IN_USE_S)
    entry(tmp_path, "unused", 1000, 2 * IN_USE_S)
    note_use(used)
    evict(tmp_path.iterdir(), 0, keep=tmp_path / "none")
    assert names(tmp_path) == ["used"]
    note_use(tmp_path / "removed meanwhile")


def test_a_folder_that_vanishes_while_it_is_measured_counts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing = entry(tmp_path, "changing", 100_000, 2 * IN_USE_S)
    entry(tmp_path, "kept", 1000, 9 * IN_USE_S)
    scandir = os.scandir

    def renamed_by_another(path: object) -> object:
        if str(path) == str(changing / "deep"):
            (changing / "deep").rename(tmp_path / "renamed")
        return scandir(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", renamed_by_another)
    evict([changing, tmp_path / "kept"], 50_000, keep=tmp_path / "kept")
    assert names(tmp_path) == ["changing", "kept", "renamed"]


def test_the_result_store_removes_its_oldest(tmp_path: Path) -> None:
    request = request_of()
    size_bytes = len(ok_result(request, 1.0).model_dump_json())
    store = SqliteResultStore(tmp_path / "r.sqlite", limit_bytes=8 * size_bytes)
    for number in range(store_module._PRUNE_EVERY):
        store.put(f"key {number}", ok_result(request, 1.0))
    found = [number for number in range(store_module._PRUNE_EVERY) if store.get(f"key {number}")]
    assert found == list(range(store_module._PRUNE_EVERY - 6, store_module._PRUNE_EVERY))
    store.close()
