"""Workers of ``service_load.py``: a real one with nothing to do, or one that does nothing but take its time.

The latter needs so little of the host that 64 of them fit on two cores, beside the broker that is measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import zmq

from ascend_gym.core.codec import Kind, WireMessage, encode
from ascend_gym.core.records import (
    Candidate,
    CaseResult,
    Charge,
    DaemonInfo,
    DeviceInfo,
    EvalRequest,
    EvalResult,
    PhaseSeconds,
    Profile,
    SourceFile,
    Sources,
)
from ascend_gym.core.status import Status

DEVICE = DeviceInfo(backend="fixed time", chip="910B2", toolchain_digest="0", sandbox="none", host="here")
INFO = DaemonInfo(device=DEVICE, chips=(DEVICE.chip,))
OP_FOLDER = b'"op_folder":"'
SEND_MORE = int(zmq.SNDMORE)  # flags that are enumerations cost more than what they are for
NO_SOURCES = Sources(files=(SourceFile(path="k.cpp", text=""),), main="k.cpp")
NO_CANDIDATE = Candidate(host=NO_SOURCES, kernel=NO_SOURCES)
_ZEROES = {name: 0 for name, field in Profile.model_fields.items() if field.is_required()}
PROFILE = Profile(**{**_ZEROES, "task_duration_us": 100.0, "block_dim": 1})


def answer_to(request: EvalRequest, seconds: float) -> EvalResult:
    """Return a result as a real worker would, for one case."""
    case = CaseResult(case_id="only", status=Status.OK, samples_us=(100.0,), profile=PROFILE)
    return EvalResult(
        request_digest=request.digest,
        candidate_digest=request.candidate.digest,
        status=Status.OK,
        cases=(case,),
        seconds=PhaseSeconds(run=seconds, total=seconds),
        device=DEVICE,
        charge=Charge(evaluations=1, device_seconds=seconds),
    )


def named_after(request: EvalRequest) -> EvalRequest:
    """Return a request that carries its digests where a worker that only waits finds them at once.

    The operator folder is no part of the digest, and such a worker needs none.
    """
    return request.model_copy(update={"op_folder": f"{request.digest}/{request.candidate.digest}"})


class InstantService:
    """What a real worker serves when the answer is there at once."""

    def describe(self) -> DeviceInfo:
        """Say what measures."""
        return DEVICE

    def chips(self) -> tuple[str, ...]:
        """Return the chip."""
        return (DEVICE.chip,)

    def answer(self, request: EvalRequest, on_case: Callable[[], None], device: object) -> EvalResult:
        """Answer, without a device."""
        return answer_to(request, 0.0)


def wait_for_each(address: str, worker_id: str, service_s: float) -> None:
    """Take ``service_s`` for each job, holding a device; answer with the digests of ``named_after``.

    Frames are handled as bytes, because here a job may cost the host less than it costs the broker.
    """
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.setsockopt(zmq.IDENTITY, worker_id.encode())
    socket.connect(address)
    socket.send_multipart(encode(WireMessage(Kind.READY, payload=INFO)))
    template = answer_to(EvalRequest(op_id="", folder_digest="", candidate=NO_CANDIDATE), service_s)
    answer = template.model_dump_json().encode()
    while True:
        header, payload = socket.recv(), socket.recv()
        began_s = time.monotonic()
        send(socket, with_kind(header, Kind.WANT), b"")
        result = answer
        for digest, template_digest in zip(digests_in(payload), digests_of(template), strict=True):
            result = result.replace(template_digest, digest, 1)
        socket.recv(), socket.recv()
        time.sleep(max(0.0, service_s - (time.monotonic() - began_s)))
        send(socket, with_kind(header, Kind.RESULT), result)  # which gives the device back


def send(socket: zmq.Socket[bytes], header: bytes, payload: bytes) -> None:
    """Send one message, waiting for room."""
    socket.send(header, SEND_MORE)
    socket.send(payload)


def digests_of(result: EvalResult) -> list[bytes]:
    """Return what a result says which question and candidate it is about."""
    return [result.request_digest.encode(), result.candidate_digest.encode()]


def digests_in(payload: bytes) -> list[bytes]:
    """Return the digests that ``named_after`` put into a request."""
    return payload.partition(OP_FOLDER)[2].partition(b'"')[0].split(b"/")


def with_kind(header: bytes, kind: Kind) -> bytes:
    """Return the header of another message about the same lease."""
    return header[:3] + kind.value + header[4:]


def main() -> None:
    """Serve ``sys.argv``: address of the broker, worker id, service time in seconds; until killed."""
    address, worker_id, service_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
    if service_s:
        wait_for_each(address, worker_id, service_s)
    else:
        from npu_daemon.worker import Worker  # costs the start of the others

        Worker(InstantService(), address, worker_id).run()


if __name__ == "__main__":
    main()
