"""Messages between clients, broker and workers, and their wire format.

A message is two frames: a header (magic, protocol version, kind, attempt, request id) and the payload (JSON
of a record). A client's request ids are ``CLIENT.NUMBER``, with a random name of its own, by which it is
known again on a new connection; the daemon names connections itself. Decoding checks in a fixed order:
lengths, then version, then content. Decoding errors are values (``CodecError``), so that nobody on the
network can raise an exception in a daemon.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from struct import Struct

from pydantic import ValidationError

from ascend_gym.core.records import (
    DaemonInfo,
    DaemonStatus,
    DeviceGrant,
    Diagnostic,
    EvalRequest,
    EvalResult,
    Record,
    TenantName,
    WorkerCount,
)

WIRE_VERSION = 4
MAX_REQUEST_ID_CHARS = 64
MAX_PAYLOAD_BYTES = 16 * 2**20
MAX_ATTEMPT = 2**32 - 1

MAX_STRINGS = 10_000
"""Of the JSON of a client's message, keys included; more cost the broker's only thread seconds to refuse."""
MAX_ITEMS = 30_000
"""Commas, colons and brackets of such a message outside of strings."""
MAX_BARE_BYTES = 2**20
"""Bytes of such a message outside of strings."""
MAX_ESCAPES = 2**21
"""Backslashes of such a message: one in eight bytes of the longest, and sources have one in twenty."""

_MAGIC = b"AG"
_HEADER = Struct(">2sBcI")  # magic, version, kind, attempt; the request id is what follows
_FRAME_COUNT = 2
_MAX_FRAME_BYTES = (_HEADER.size + MAX_REQUEST_ID_CHARS, MAX_PAYLOAD_BYTES)
_REQUEST_ID = re.compile(rf"[A-Za-z0-9_.-]{{0,{MAX_REQUEST_ID_CHARS}}}\Z")


class Kind(Enum):
    """Kind of a message; the value is its byte on the wire."""

    SUBMIT = b"S"  # client -> broker: evaluate this request
    CANCEL = b"C"  # client -> broker: stop this request
    DESCRIBE = b"D"  # client -> broker: report your device
    DEVICE = b"d"  # broker -> client: the device
    REFUSED = b"x"  # broker -> client: the message is invalid, with the reason
    BUSY = b"B"  # broker -> client: not accepted, because too much is waiting; send it again later
    RESULT = b"R"  # worker -> broker -> client: the answer
    READY = b"r"  # worker -> broker: ready for work, with the worker's device
    BEAT = b"b"  # worker -> broker: the lease is alive; broker -> client: requests are in progress
    WANT = b"w"  # worker -> broker: the build is done, requests a device for a run
    FREED = b"f"  # worker -> broker: the device of this lease is free again
    JOB = b"J"  # broker -> worker: evaluate this request
    GRANT = b"g"  # broker -> worker: run this lease on a device
    STATUS = b"s"  # client -> broker: report your status
    REPORT = b"p"  # broker -> client: the status
    DRAIN = b"q"  # operator -> broker: finish what runs, then stop
    RESIZE = b"z"  # operator -> broker: change the number of workers
    EXPEL = b"e"  # operator -> broker: cut a tenant's connections and end its jobs


_FROM_CLIENTS = (Kind.SUBMIT, Kind.RESIZE, Kind.EXPEL)
_SHOWN_CHARS, _SHOWN_ERRORS = 2000, 5  # of what is wrong with a payload
_KINDS = {kind.value: kind for kind in Kind}
_PAYLOADS: dict[Kind, type[Record] | None] = {
    Kind.SUBMIT: EvalRequest,
    Kind.CANCEL: None,
    Kind.DESCRIBE: None,
    Kind.DEVICE: DaemonInfo,
    Kind.REFUSED: Diagnostic,
    Kind.BUSY: Diagnostic,
    Kind.RESULT: EvalResult,
    Kind.READY: DaemonInfo,
    Kind.BEAT: None,
    Kind.WANT: None,
    Kind.FREED: None,
    Kind.JOB: EvalRequest,
    Kind.GRANT: DeviceGrant,
    Kind.STATUS: None,
    Kind.REPORT: DaemonStatus,
    Kind.DRAIN: None,
    Kind.RESIZE: WorkerCount,
    Kind.EXPEL: TenantName,
}


@dataclass(frozen=True)
class WireMessage:
    """One message; ``kind`` determines the type of ``payload``.

    Raises:
        ValueError: the payload does not match the kind, or the id or attempt cannot be encoded.
    """

    kind: Kind
    request_id: str = ""
    attempt: int = 0
    payload: Record | None = None

    def __post_init__(self) -> None:
        expected = _PAYLOADS[self.kind] or type(None)
        if type(self.payload) is not expected:
            raise ValueError(
                f"{self.kind.name} carries {expected.__name__}, not {type(self.payload).__name__}"
            )
        if not _REQUEST_ID.match(self.request_id):
            raise ValueError(f"request ids are at most {MAX_REQUEST_ID_CHARS} letters, digits and '_.-'")
        if not 0 <= self.attempt <= MAX_ATTEMPT:
            raise ValueError(f"attempt must be in [0, {MAX_ATTEMPT}], got {self.attempt}")


@dataclass(frozen=True)
class CodecError:
    """Why frames are not a valid message; ``request_id`` is set if it could be decoded."""

    reason: str
    request_id: str = ""


def encode(message: WireMessage) -> list[bytes]:
    """Return the frames of ``message``.

    Raises:
        ValueError: the payload is longer than ``MAX_PAYLOAD_BYTES``.
    """
    payload = message.payload.model_dump_json().encode() if message.payload is not None else b""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"a payload has at most {MAX_PAYLOAD_BYTES} bytes, this one has {len(payload)}")
    header = _HEADER.pack(_MAGIC, WIRE_VERSION, message.kind.value, message.attempt)
    return [header + message.request_id.encode(), payload]


def decode(frames: Sequence[bytes]) -> WireMessage | CodecError:
    """Return the message of ``frames``, or the reason why they are not one."""
    problem = _length_problem(frames)
    if problem:
        return CodecError(problem)
    header, payload = frames
    magic, version, raw_kind, attempt = _HEADER.unpack_from(header)
    request_id = header[_HEADER.size :].decode("latin-1")
    if not _REQUEST_ID.match(request_id):
        return CodecError("the request id has characters other than letters, digits and '_.-'")
    if magic != _MAGIC:
        return CodecError(
            f"expected a message that begins with {_MAGIC!r}, got header {header!r}", request_id
        )
    if version != WIRE_VERSION:
        return CodecError(
            f"expected wire protocol version {WIRE_VERSION}, got {version}: bring client and daemon to the "
            "same release",
            request_id,
        )
    kind = _KINDS.get(raw_kind)
    if kind is None:
        return CodecError(f"unknown message kind {raw_kind!r}", request_id)
    return _with_payload(kind, request_id, attempt, payload)


def _length_problem(frames: Sequence[bytes]) -> str | None:
    if len(frames) != _FRAME_COUNT:
        return f"expected {_FRAME_COUNT} frames (protocol version {WIRE_VERSION}), got {len(frames)}"
    for index, (frame, limit) in enumerate(zip(frames, _MAX_FRAME_BYTES, strict=True)):
        if len(frame) > limit:
            return f"frame {index} has {len(frame)} bytes, the limit is {limit}"
    if len(frames[0]) < _HEADER.size:
        return f"the header has {len(frames[0])} bytes, not {_HEADER.size} and a request id"
    return None


def _with_payload(kind: Kind, request_id: str, attempt: int, payload: bytes) -> WireMessage | CodecError:
    record_type = _PAYLOADS[kind]
    if record_type is None:
        if payload:
            return CodecError(f"{kind.name} carries no payload, got {len(payload)} bytes", request_id)
        return WireMessage(kind, request_id, attempt)
    excess = _excess(payload) if kind in _FROM_CLIENTS else None
    if excess is not None:
        return CodecError(f"payload of {kind.name} has more than {excess}", request_id)
    try:
        record = record_type.model_validate_json(payload)
    except (ValueError, RecursionError) as error:
        problem = _shown(error)[:_SHOWN_CHARS]
        return CodecError(f"payload of {kind.name} is not a {record_type.__name__}: {problem}", request_id)
    return WireMessage(kind, request_id, attempt, record)


def _shown(error: Exception) -> str:
    """Return what is wrong with a payload, without the input, which takes longer to print than to read."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[:_SHOWN_ERRORS]
    problems = [
        f"{'.'.join(map(str, each['loc']))[:100]}: {each['msg'][:300]}".lstrip(": ") for each in first
    ]
    more = error.error_count() - len(first)
    return "; ".join(problems) + (f"; and {more} more" if more else "")


def _excess(payload: bytes) -> str | None:
    """Return what JSON has too much of, in a few passes over its bytes and before anything is made of it.

    What is outside of strings is found without reading JSON: no escaped quote is left, so that quotes open
    and close strings in turn. In what is not JSON this counts something else, and no more work follows.
    """
    escapes = payload.count(b"\\")
    if escapes > MAX_ESCAPES:
        return f"{MAX_ESCAPES} escapes"
    plain = payload.replace(b"\\\\", b"").replace(b'\\"', b"") if escapes else payload
    if plain.count(b'"') > 2 * MAX_STRINGS:
        return f"{MAX_STRINGS} strings"
    bare = b"".join(plain.split(b'"')[::2])
    if len(bare) > MAX_BARE_BYTES:
        return f"{MAX_BARE_BYTES} bytes outside of strings"
    if sum(map(bare.count, (b",", b":", b"[", b"{"))) > MAX_ITEMS:
        return f"{MAX_ITEMS} items"
    return None
