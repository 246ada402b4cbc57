"""Work that waits for a processor: it begins when one is idle, when its result is wanted, or never."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from npu_daemon import processors
from npu_daemon.processors import WhenIdle, none_waits

PATIENCE_S = 180.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool


def looks(monkeypatch: pytest.MonkeyPatch, look: Callable[[], bool]) -> None:
    monkeypatch.setattr(processors, "none_waits", look)


def test_it_begins_by_itself_once_a_processor_is_idle(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter([False, False, True])
    looks(monkeypatch, lambda: next(seen))
    begun = threading.Event()
    work = WhenIdle(pool, begun.set)
    assert begun.wait(PATIENCE_S)
    assert list(seen) == []
    assert work.result() is None


def test_it_begins_when_its_result_is_wanted_however_busy_the_processors_are(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = threading.Event()

    def busy() -> bool:
        looked.set()
        return False

    looks(monkeypatch, busy)
    works = [WhenIdle(pool, lambda number=number: number) for number in range(2)]
    assert looked.wait(PATIENCE_S)
    works[0].begin()
    assert [work.result() for work in works] == [0, 1]


def test_nobody_looks_for_an_idle_processor_for_long(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "_LOOKING_S", 0.0)
    looks_made: list[str] = []

    def busy() -> bool:
        looks_made.append("one")
        return False

    looks(monkeypatch, busy)
    done: list[str] = []
    late, never = WhenIdle(pool, lambda: "late"), WhenIdle(pool, lambda: done.append("never"))
    pool.submit(done.append, "the next").result(PATIENCE_S)  # both have given up
    assert (looks_made, done) == (["one", "one"], ["the next"])
    assert [late.result(), late.result()] == ["late", "late"]
    never.drop()
    assert (looks_made, done) == (["one", "one"], ["the next"])


def test_what_is_dropped_before_it_begins_never_does(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks(monkeypatch, lambda: False)
    done: list[str] = []
    work = WhenIdle(pool, lambda: done.append("it"))
    work.drop()
    pool.submit(done.append, "the next").result(PATIENCE_S)
    assert done == ["the next"]


def test_what_has_begun_is_awaited_when_it_is_dropped(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks(monkeypatch, lambda: True)
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def fail() -> None:
        begun.set()
        may_end.wait(PATIENCE_S)
        ended.set()
        raise ValueError("nobody asks for it")

    work = WhenIdle(pool, fail)
    assert begun.wait(PATIENCE_S)
    dropping = threading.Thread(target=work.drop)
    dropping.start()
    may_end.set()
    dropping.join(PATIENCE_S)
    assert ended.is_set()
    with pytest.raises(ValueError, match="nobody asks for it"):
        work.result()


@pytest.mark.parametrize(
    ("load", "idle"),
    [("0.1 0.2 0.3 2/345 6789\n", True), ("0.1 0.2 0.3 3/345 6789\n", False), ("unreadable", False)],
)
def test_threads_that_can_run_are_compared_with_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: str, idle: bool
) -> None:
    file = tmp_path / "loadavg"
    file.write_text(load, "ascii")
    monkeypatch.setattr(processors, "_LOAD", file)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert none_waits() is idle
    file.unlink()
    assert not none_waits()
