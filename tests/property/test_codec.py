"""The wire codec: what goes in comes out, and no bytes raise anything."""

from __future__ import annotations

import math
from typing import Any

import pytest
from conftest import make_candidate, ok_result
from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.core.codec import (
    MAX_ATTEMPT,
    MAX_PAYLOAD_BYTES,
    WIRE_VERSION,
    CodecError,
    Kind,
    WireMessage,
    decode,
    encode,
)
from ascend_gym.core.records import (
    Accuracy,
    CaseResult,
    DaemonInfo,
    DaemonStatus,
    DeviceGrant,
    DeviceInfo,
    Diagnostic,
    EvalRequest,
    EvalResult,
    MeasureProtocol,
    Phase,
    Record,
    TenantName,
    TenantStatus,
    WorkerCount,
    failed_result,
)
from ascend_gym.core.status import Status

texts = st.text(max_size=200)
request_ids = st.text("abcXYZ019_.-", max_size=64)
attempts = st.integers(0, MAX_ATTEMPT)
diagnostics = st.builds(
    Diagnostic, phase=st.sampled_from(Phase), message=texts, line=st.none() | st.integers(1, 99)
)
devices = st.builds(DeviceInfo, backend=texts, chip=texts, toolchain_digest=texts, sandbox=texts, host=texts)
infos = st.builds(DaemonInfo, device=devices, chips=st.tuples(texts), slots=st.integers(1, 99))
tenants = st.builds(
    TenantStatus,
    tenant=texts,
    queued=st.integers(0, 9),
    running=st.integers(0, 9),
    evaluations=st.integers(0, 9),
    device_seconds=st.floats(0, 1e6),
    connections=st.integers(0, 9),
)
statuses = st.builds(
    DaemonStatus,
    address=texts,
    info=st.none() | infos,
    up_seconds=st.floats(0, 1e6),
    draining=st.booleans(),
    workers=st.dictionaries(texts, st.integers(0, 9), max_size=3),
    devices=st.integers(1, 9),
    devices_held=st.integers(0, 9),
    device_held_seconds=st.floats(0, 1e6),
    charged_device_seconds=st.floats(0, 1e6),
    queued=st.integers(0, 9),
    running=st.integers(0, 9),
    tenants=st.tuples(tenants),
    counts=st.dictionaries(texts, st.integers(0, 9), max_size=3),
)
requests = st.builds(
    EvalRequest,
    op_id=texts,
    op_folder=st.none() | texts,
    folder_digest=texts,
    candidate=st.builds(make_candidate, texts, texts),
    case_ids=st.sampled_from([(), ("small",), ("large", "small")]),
    protocol=st.builds(MeasureProtocol, input_seed=st.integers(), repeats=st.integers(1, 9)),
    use_cache=st.booleans(),
    priority=st.integers(-100, 100),
)


@st.composite
def results(draw: st.DrawFn) -> EvalResult:
    request = draw(requests)
    if draw(st.booleans()):
        return ok_result(request, draw(st.floats(0.01, 1e9)))
    status = draw(st.sampled_from([status for status in Status if status is not Status.OK]))
    return failed_result(request, status, draw(diagnostics))


def _payloads(kind: Kind) -> st.SearchStrategy[Record | None]:
    if kind in (Kind.SUBMIT, Kind.JOB):
        return requests
    if kind in (Kind.DEVICE, Kind.READY):
        return infos
    if kind is Kind.RESULT:
        return results()
    if kind is Kind.GRANT:
        return st.builds(DeviceGrant, device=st.integers(0, 99))
    if kind is Kind.RESIZE:
        return st.builds(WorkerCount, workers=st.integers(1, 99))
    if kind is Kind.EXPEL:
        return st.builds(TenantName, tenant=st.text("abc.-", min_size=1, max_size=64))
    if kind is Kind.REPORT:
        return statuses
    return diagnostics if kind in (Kind.REFUSED, Kind.BUSY) else st.none()


messages = st.sampled_from(Kind).flatmap(
    lambda kind: st.builds(WireMessage, st.just(kind), request_ids, attempts, _payloads(kind))
)


@given(messages)
def test_every_message_survives_the_wire(message: WireMessage) -> None:
    assert decode(encode(message)) == message


@given(st.lists(st.binary(max_size=80), max_size=6))
def test_random_frames_are_errors_as_values(frames: list[bytes]) -> None:
    assert isinstance(decode(frames), CodecError)


@given(messages, st.data())
def test_damaged_messages_never_raise(message: WireMessage, data: st.DataObject) -> None:
    frames = encode(message)
    index = data.draw(st.integers(0, len(frames) - 1))
    damaged = bytearray(frames[index])
    for position in data.draw(st.lists(st.integers(0, max(0, len(damaged) - 1)), max_size=5)):
        if damaged:
            damaged[position] ^= data.draw(st.integers(1, 255))
    frames[index] = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    assert isinstance(decode(frames), CodecError | WireMessage)


@given(messages, st.integers(0, 255).filter(lambda version: version != WIRE_VERSION))
def test_another_version_is_refused_before_its_payload_is_read(message: WireMessage, version: int) -> None:
    header, _ = encode(message)
    changed = header[:2] + bytes([version]) + header[3:]
    decoded = decode([changed, b"\xff not json"])
    assert isinstance(decoded, CodecError)
    assert f"version {WIRE_VERSION}" in decoded.reason
    assert decoded.request_id == message.request_id


def test_lengths_are_checked_first() -> None:
    header, _ = encode(WireMessage(Kind.BEAT, "r1", 1))
    wrong: list[list[bytes]] = [
        [header, bytes(MAX_PAYLOAD_BYTES + 1)],
        [header + b"a" * 63, b""],
        [header[:7], b""],
        [header],
        [header, b"", b""],
    ]
    reasons = [decode(frames) for frames in wrong]
    assert all(isinstance(reason, CodecError) and "expected wire" not in reason.reason for reason in reasons)
    assert decode([header, b""]) == WireMessage(Kind.BEAT, "r1", 1)


def test_deeply_nested_json_is_an_error_value() -> None:
    header, _ = encode(WireMessage(Kind.BEAT, "r1", 1))
    nested = b'{"op_id":' + b"[" * 1_000_000
    decoded = decode([header[:3] + Kind.SUBMIT.value + header[4:], nested])
    assert isinstance(decoded, CodecError)
    assert decoded.request_id == "r1"


def test_unwanted_payload_is_refused() -> None:
    header, _ = encode(WireMessage(Kind.CANCEL, "r1"))
    assert isinstance(decode([header, b"{}"]), CodecError)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": Kind.CANCEL, "request_id": "no spaces please"},
        {"kind": Kind.CANCEL, "request_id": "x" * 65},
        {"kind": Kind.CANCEL, "attempt": -1},
        {"kind": Kind.SUBMIT},
        {"kind": Kind.BEAT, "payload": Diagnostic(phase=Phase.SERVICE, message="m")},
    ],
)
def test_impossible_messages_cannot_be_built(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"carries|request ids|attempt"):
        WireMessage(**fields)


def test_infinite_errors_survive_the_wire() -> None:
    accuracy = Accuracy(
        max_abs_error=math.inf, max_rel_error=math.inf, bad_share=1.0, upstream_rule_passes=False
    )
    request = EvalRequest(op_id="core/toy", folder_digest="0", candidate=make_candidate())
    complaint = Diagnostic(phase=Phase.VERIFY, message="another shape")
    case = CaseResult(case_id="c", status=Status.INCORRECT, accuracy=accuracy, diagnostics=(complaint,))
    result = EvalResult(
        request_digest=request.digest,
        candidate_digest=request.candidate.digest,
        status=Status.INCORRECT,
        cases=(case,),
    )
    assert decode(encode(WireMessage(Kind.RESULT, "r", 1, result))) == WireMessage(
        Kind.RESULT, "r", 1, result
    )
