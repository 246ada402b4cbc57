"""Evaluators on scripted daemons: back-pressure, resubmission, loss and return of daemons."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import make_candidate
from scripted_daemon import ScriptedDaemon, device

from ascend_gym.client import ZmqEvaluator, daemon_session
from ascend_gym.core import codec
from ascend_gym.core.codec import WIRE_VERSION, Kind, WireMessage, encode
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.protocols import Evaluation, Evaluator
from ascend_gym.core.records import Diagnostic, EvalRequest, EvalResult, MeasureProtocol, Phase
from ascend_gym.core.status import Status

DEADLINE_S = 180.0
BUSY = Diagnostic(phase=Phase.SERVICE, message="the queue is full")


def request(name: str = "a", chip: str = "910B2") -> EvalRequest:
    return EvalRequest(
        op_id="core/toy",
        folder_digest="0",
        candidate=make_candidate(kernel=f"// {name}"),
        protocol=MeasureProtocol(chip=chip),
    )


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Callable[..., ScriptedDaemon]]:
    made: list[ScriptedDaemon] = []

    def make(name: str, **fields: Any) -> ScriptedDaemon:
        made.append(ScriptedDaemon(f"ipc://{tmp_path}/{name}", **fields))
        return made[-1]

    yield make
    for daemon in made:
        daemon.close()


@contextmanager
def serving(*members: ScriptedDaemon) -> Iterator[None]:
    """Let daemons answer questions about themselves while a client is being made."""
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            for member in members:
                member.serve_once(5)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def pool_of(*members: ScriptedDaemon, extra: tuple[str, ...] = (), timeout_s: float = 0.3) -> ZmqEvaluator:
    """Return a pool that all members have joined; from then on a lost one is missed after ``timeout_s``."""
    with serving(*members):
        pool = ZmqEvaluator([*(member.address for member in members), *extra], connect_timeout_s=timeout_s)
        for session in pool._sessions[: len(members)]:
            session.link.connect_timeout_s = DEADLINE_S
        if not extra:  # nobody is given up before all have joined
            pool._connect_timeout_s = DEADLINE_S
        pool.describe()
    for session in pool._sessions:
        session.link.connect_timeout_s = timeout_s
    return pool


def until(condition: Callable[[], bool], evaluator: Evaluator, *members: ScriptedDaemon) -> list[Any]:
    """Let both sides work until ``condition`` holds; return the results of that time."""
    deadline_s = time.monotonic() + DEADLINE_S
    results: list[Any] = []
    while not condition():
        assert time.monotonic() < deadline_s
        for member in members:
            member.serve_once(1)
        results += evaluator.poll(0)
    return results


def by_id(finished: list[tuple[Evaluation, EvalResult]]) -> dict[str, EvalResult]:
    return {evaluation.request_id: result for evaluation, result in finished}


def collect(evaluator: Evaluator, count: int) -> dict[Evaluation, EvalResult]:
    results: dict[Evaluation, EvalResult] = {}
    deadline_s = time.monotonic() + DEADLINE_S
    while len(results) < count:
        assert time.monotonic() < deadline_s
        results.update(evaluator.poll(1.0))
    return results


def answered(evaluator: Evaluator, count: int) -> dict[str, EvalResult]:
    return by_id(list(collect(evaluator, count).items()))


# --- one daemon ---


def test_no_more_than_the_window_is_with_the_daemon(daemons: Callable[..., ScriptedDaemon]) -> None:
    daemon = daemons("a")
    evaluator = ZmqEvaluator(daemon.address, max_in_flight=2)
    ids = [evaluator.submit(request(str(n))).request_id for n in range(5)]
    until(lambda: len(daemon.submitted) == 2, evaluator, daemon)
    evaluator.poll(0)
    daemon.serve_once(20)
    assert daemon.submitted == ids[:2]
    daemon.answer(ids[1])
    assert list(answered(evaluator, 1)) == [ids[1]]
    until(lambda: daemon.submitted == ids[:3], evaluator, daemon)
    evaluator.close()


def test_a_busy_daemon_gets_the_request_again_when_it_has_answered_another(
    daemons: Callable[..., ScriptedDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_session, "BUSY_PAUSE_S", 3600.0)
    daemon = daemons("a")
    evaluator = ZmqEvaluator(daemon.address)
    first, second = (evaluator.submit(request(each)).request_id for each in "12")
    until(lambda: len(daemon.submitted) == 2, evaluator, daemon)
    daemon.send(WireMessage(Kind.BUSY, second, payload=BUSY))
    daemon.answer(first)
    assert list(answered(evaluator, 1)) == [first]
    until(lambda: daemon.submitted == [first, second, second], evaluator, daemon)
    daemon.answer(second)
    assert list(answered(evaluator, 1)) == [second]
    evaluator.close()


def test_a_busy_daemon_is_asked_again_after_a_pause(
    daemons: Callable[..., ScriptedDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_session, "BUSY_PAUSE_S", 0.01)
    daemon = daemons("a")
    evaluator = ZmqEvaluator(daemon.address)
    only = evaluator.submit(request()).request_id
    for times in (1, 2, 3):
        until(lambda times=times: len(daemon.submitted) == times, evaluator, daemon)  # type: ignore[misc]
        daemon.send(WireMessage(Kind.BUSY, only, payload=BUSY))
    evaluator.close()


def test_a_busy_daemon_is_not_asked_for_more_than_it_took(daemons: Callable[..., ScriptedDaemon]) -> None:
    daemon = daemons("a")
    evaluator = ZmqEvaluator(daemon.address)
    ids = [evaluator.submit(request(str(n))).request_id for n in range(10)]
    until(lambda: len(daemon.submitted) == 10, evaluator, daemon)
    for refused in ids[2:]:
        daemon.send(WireMessage(Kind.BUSY, refused, payload=BUSY))
    daemon.answer(ids[0])
    assert list(answered(evaluator, 1)) == [ids[0]]
    until(lambda: len(daemon.submitted) == 11, evaluator, daemon)
    evaluator.poll(0)
    daemon.serve_once(20)
    assert daemon.submitted == [*ids, ids[2]], "two at a time, as it had accepted"
    evaluator.close()


def test_requests_that_wait_here_are_cancelled_here(daemons: Callable[..., ScriptedDaemon]) -> None:
    daemon = daemons("a")
    evaluator = ZmqEvaluator(daemon.address, max_in_flight=1)
    sent, kept = evaluator.submit(request("1")), evaluator.submit(request("2"))
    kept.cancel()
    assert kept.result().status is Status.CANCELLED
    sent.cancel()
    until(lambda: daemon.cancelled == [sent.request_id], evaluator, daemon)
    daemon.send(WireMessage(Kind.BUSY, sent.request_id, payload=BUSY))  # the two messages crossed
    assert sent.result().status is Status.CANCELLED
    assert daemon.submitted == [sent.request_id]
    evaluator.close()


def test_after_a_new_connection_the_same_ids_are_submitted_again(
    daemons: Callable[..., ScriptedDaemon],
) -> None:
    first = daemons("a")
    evaluator = ZmqEvaluator(first.address)
    ids = [evaluator.submit(request(str(n))).request_id for n in range(3)]
    until(lambda: first.submitted == ids, evaluator, first)
    first.answer(ids[0])
    answered(evaluator, 1)
    first.close()
    second = daemons("a")
    until(lambda: second.submitted == ids[1:], evaluator, second)
    second.answer(ids[2])
    second.answer(ids[1])
    assert set(answered(evaluator, 2)) == set(ids[1:])
    second.requests[ids[1]] = request("1")
    second.answer(ids[1])
    until(lambda: evaluator.dropped_messages == 1, evaluator, second)
    evaluator.close()


def test_a_connected_daemon_that_says_nothing_is_not_waited_for_for_ever(
    daemons: Callable[..., ScriptedDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A green connection says nothing of the process behind it; its beats on this channel do."""
    daemon = daemons("a")
    evaluator = ZmqEvaluator(daemon.address, connect_timeout_s=3600)
    evaluator.submit(request())
    until(lambda: bool(daemon.submitted), evaluator, daemon)
    monkeypatch.setattr(daemon_session, "SILENCE_S", 0.2)
    with pytest.raises(DaemonUnreachableError, match="has said nothing"):
        evaluator.poll(DEADLINE_S)
    assert _is_heard(evaluator, daemon)
    evaluator.close()


def _is_heard(evaluator: ZmqEvaluator, daemon: ScriptedDaemon) -> bool:
    """Whether the evaluator goes on before long, as it does when something arrives."""
    deadline_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline_s:
        daemon.send(WireMessage(Kind.BEAT))
        try:
            return evaluator.poll(0.01) == []
        except DaemonUnreachableError:
            continue
    return False


def test_a_silent_daemon_is_asked_once_more_under_the_same_ids(
    daemons: Callable[..., ScriptedDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer may be lost without the connection being lost."""
    monkeypatch.setattr(daemon_session, "REMIND_S", 0.05)
    daemon = daemons("a")
    evaluator = ZmqEvaluator(daemon.address)
    ids = [evaluator.submit(request(str(n))).request_id for n in range(2)]
    until(lambda: len(daemon.submitted) >= 4, evaluator, daemon)
    assert daemon.submitted == ids * 2
    daemon.answer(ids[0])
    assert list(answered(evaluator, 1)) == [ids[0]]
    until(lambda: daemon.submitted[4:] == ids[1:], evaluator, daemon)
    evaluator.close()


def test_a_request_that_is_too_large_is_the_caller_s_fault_and_nothing_is_lost(
    daemons: Callable[..., ScriptedDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that had to wait: what comes after it is sent."""
    monkeypatch.setattr(codec, "MAX_PAYLOAD_BYTES", 20_000)
    daemon = daemons("a")
    evaluator = ZmqEvaluator(daemon.address, max_in_flight=1)
    large = request("x" * 30_000)
    first, too_large, last = (
        evaluator.submit(each).request_id for each in (request("1"), large, request("2"))
    )
    until(lambda: daemon.submitted == [first], evaluator, daemon)
    daemon.answer(first)
    results = by_id(until(lambda: daemon.submitted == [first, last], evaluator, daemon))
    assert results[first].status is Status.OK
    assert results[too_large].status is Status.INVALID_REQUEST
    assert "at most 20000 bytes" in results[too_large].diagnostics[0].message
    assert evaluator.poll(0) == []
    evaluator.close()


def test_a_daemon_of_another_release_is_told_by_its_version(daemons: Callable[..., ScriptedDaemon]) -> None:
    daemon = daemons("a")
    evaluator = ZmqEvaluator(daemon.address)
    evaluator.submit(request())
    until(lambda: bool(daemon.submitted), evaluator, daemon)
    header, payload = encode(WireMessage(Kind.BEAT))
    daemon.send_frames([header[:2] + bytes([WIRE_VERSION + 1]) + header[3:], payload])
    with pytest.raises(
        InfrastructureError, match=rf"version {WIRE_VERSION}, got {WIRE_VERSION + 1}.*release"
    ):
        evaluator.poll(DEADLINE_S)
    evaluator.close()


# --- several daemons ---


def test_requests_go_to_the_daemons_by_their_slots_and_come_back_in_any_order(
    daemons: Callable[..., ScriptedDaemon],
) -> None:
    small, large = daemons("small", slots=1), daemons("large", slots=3)
    pool = pool_of(small, large)
    assert {info.slots for info in pool.infos.values()} == {1, 3}
    assert pool.describe() == device()
    ids = [pool.submit(request(str(n))) for n in range(12)]
    until(lambda: len(small.submitted) == 2 and len(large.submitted) == 6, pool, small, large)
    latencies = {}
    while len(latencies) < 12:
        for member in (large, small):
            for inner_id, asked in reversed(list(member.requests.items())):
                number = int(asked.candidate.kernel_text.split()[-1])
                member.answer(inner_id, latency_us=1.0 + number)
        latencies.update({pool_id: result.latency_us for pool_id, result in pool.poll(0.01)})
        small.serve_once(1)
        large.serve_once(1)
    assert latencies == {pool_id: pytest.approx(1.0 + n) for n, pool_id in enumerate(ids)}
    pool.close()


def test_a_chip_is_measured_where_it_can_be(daemons: Callable[..., ScriptedDaemon]) -> None:
    b2, b3 = daemons("b2", chips=["910B2"]), daemons("b3", chips=["910B3", "910B4"])
    pool = pool_of(b2, b3)
    for chip in ("910B3", "910B2", "910B4"):
        pool.submit(request(chip=chip))
    until(lambda: len(b2.requests) + len(b3.requests) == 3, pool, b2, b3)
    assert {asked.protocol.chip for asked in b2.requests.values()} == {"910B2"}
    pool.close()


def test_a_lost_daemon_s_requests_go_to_the_others_and_it_may_return(
    daemons: Callable[..., ScriptedDaemon],
) -> None:
    first, second = daemons("first"), daemons("second")
    pool = pool_of(first, second)
    ids = [pool.submit(request(str(n))) for n in range(4)]
    until(lambda: len(first.submitted) == len(second.submitted) == 2, pool, first, second)
    lost = list(first.submitted)
    first.close()
    for inner_id in list(second.requests):
        second.answer(inner_id)
    answers = collect(pool, 2)
    until(lambda: len(second.submitted) == 4, pool, second)
    for inner_id in list(second.requests):
        second.answer(inner_id)
    answers |= collect(pool, 2)
    assert set(answers) == set(ids)
    assert list(pool.infos) == [second.address]
    back = daemons("first")
    until(lambda: len(pool.infos) == 2, pool, back, second)
    until(lambda: back.cancelled == lost, pool, back)  # what it may have kept is not evaluated in vain
    assert back.submitted == []
    pool.close()


def test_an_infra_error_is_tried_on_another_daemon_once(daemons: Callable[..., ScriptedDaemon]) -> None:
    first, second = daemons("first"), daemons("second")
    pool = pool_of(first, second)
    only = pool.submit(request())
    until(lambda: bool(first.requests), pool, first, second)
    first.fail(first.submitted[0])
    until(lambda: bool(second.requests), pool, first, second)
    second.fail(second.submitted[0])
    assert collect(pool, 1)[only].status is Status.INFRA_ERROR
    assert (len(first.submitted), len(second.submitted)) == (1, 1)
    pool.close()


def test_what_only_lost_daemons_could_measure_is_not_measured_elsewhere(
    daemons: Callable[..., ScriptedDaemon],
) -> None:
    b2, b3 = daemons("b2", chips=["910B2"]), daemons("b3", chips=["910B3"])
    pool = pool_of(b2, b3)
    only = pool.submit(request(chip="910B2"))
    until(lambda: len(b2.submitted) == 1, pool, b2, b3)
    b2.close()
    result = collect(pool, 1)[only]
    assert result.status is Status.INFRA_ERROR
    assert "chip 910B2 are lost" in result.diagnostics[0].message
    assert b3.submitted == []
    pool.close()


def test_an_infra_error_is_not_tried_on_a_daemon_without_the_chip(
    daemons: Callable[..., ScriptedDaemon],
) -> None:
    b2, b3 = daemons("b2", chips=["910B2"]), daemons("b3", chips=["910B3"])
    pool = pool_of(b2, b3)
    only = pool.submit(request(chip="910B2"))
    until(lambda: len(b2.submitted) == 1, pool, b2, b3)
    b2.fail(b2.submitted[0])
    assert collect(pool, 1)[only].status is Status.INFRA_ERROR
    assert (len(b2.submitted), b3.submitted) == (1, [])
    pool.close()


def test_cancelling_reaches_the_daemon_or_the_waiting_line(daemons: Callable[..., ScriptedDaemon]) -> None:
    members = daemons("first"), daemons("second")
    pool = pool_of(*members)
    evaluations = [pool.submit(request(str(n))) for n in range(5)]
    evaluations[4].cancel()
    assert evaluations[4].result().status is Status.CANCELLED
    until(lambda: all(len(member.submitted) == 2 for member in members), pool, *members)
    evaluations[0].cancel()
    cancelled = evaluations[0].request_id
    expected = ([[cancelled], []], [[], [cancelled]])
    until(lambda: [member.cancelled for member in members] in expected, pool, *members)
    pool.close()
    with pytest.raises(InfrastructureError, match="closed"):
        pool.submit(request())


def test_what_was_cancelled_is_not_given_to_another_daemon(daemons: Callable[..., ScriptedDaemon]) -> None:
    first, second = daemons("first"), daemons("second")
    pool = pool_of(first, second)
    ids = [pool.submit(request(str(n))) for n in range(4)]
    until(lambda: len(first.submitted) == len(second.submitted) == 2, pool, first, second)
    has_first = "0" in first.requests[first.submitted[0]].candidate.kernel_text
    held_by_first = [ids[0], ids[2]] if has_first else [ids[1], ids[3]]
    for pool_id in held_by_first:
        pool.cancel(pool_id)
    until(lambda: len(first.cancelled) == 2, pool, first, second)
    first.fail(first.submitted[0])
    results = dict(until(lambda: len(first.requests) == 1, pool, first, second))
    first.close()
    results |= collect(pool, 2 - len(results))
    assert {each: result.status for each, result in results.items()} == dict.fromkeys(
        held_by_first, Status.CANCELLED
    )
    second.serve_once(20)
    assert len(second.submitted) == 2
    pool.close()


def test_a_daemon_that_talks_nonsense_is_left_out(daemons: Callable[..., ScriptedDaemon]) -> None:
    good, bad = daemons("good"), daemons("bad")
    pool = pool_of(good, bad)
    ids = [pool.submit(request(str(n))) for n in range(4)]
    until(lambda: len(good.submitted) == len(bad.submitted) == 2, pool, good, bad)
    bad.send_frames([b"nonsense", b""])
    until(lambda: list(pool.infos) == [good.address], pool, good)
    results: dict[str, Any] = {}
    while len(results) < len(ids):
        good.serve_once(1)
        for inner_id in list(good.requests):
            good.answer(inner_id)
        results.update(pool.poll(0.01))
    assert {result.status for result in results.values()} == {Status.OK}
    pool.close()


def test_daemons_that_measure_differently_are_not_mixed(daemons: Callable[..., ScriptedDaemon]) -> None:
    members = daemons("a"), daemons("b", describes=device(toolchain="2"))
    with pytest.raises(MisuseError, match="toolchain_digest"):
        pool_of(*members)
    with pytest.raises(MisuseError, match="different daemons"):
        ZmqEvaluator(["ipc:///x", "ipc:///x"])


@pytest.mark.slow
def test_a_pool_starts_with_what_is_there_and_ends_with_the_last(
    daemons: Callable[..., ScriptedDaemon], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = f"ipc://{tmp_path}/nowhere"
    with pytest.raises(DaemonUnreachableError, match="nowhere"):
        ZmqEvaluator([nowhere, f"{nowhere}2"], connect_timeout_s=0.05).describe()
    daemon = daemons("here")
    pool = pool_of(daemon, extra=(nowhere,))
    assert "nowhere is not in service" in caplog.text
    pool.submit(request())
    until(lambda: bool(daemon.submitted), pool, daemon)
    daemon.close()
    with pytest.raises(DaemonUnreachableError, match="none of the daemons"):
        pool.poll(DEADLINE_S)
    pool.close()
