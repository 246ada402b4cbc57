"""A worker that does nothing but take its time: it speaks the daemon's protocol and needs little of the host.

Started by ``service_load.py`` in the place of real workers, so that 64 of them fit on two cores.
"""

from __future__ import annotations

import sys
import time

import zmq

from ascend_gym.core.codec import Kind, WireMessage, decode, encode
from ascend_gym.core.records import (
    CaseResult,
    Charge,
    DaemonInfo,
    DeviceInfo,
    EvalRequest,
    EvalResult,
    PhaseSeconds,
    Profile,
)
from ascend_gym.core.status import Status

DEVICE = DeviceInfo(backend="fixed time", chip="910B2", toolchain_digest="0", sandbox="none", host="here")
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


def main() -> None:
    """Serve ``sys.argv``: address of the broker, worker id, service time in seconds; until killed."""
    address, worker_id, service_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.setsockopt(zmq.IDENTITY, worker_id.encode())
    socket.connect(address)
    socket.send_multipart(
        encode(WireMessage(Kind.READY, payload=DaemonInfo(device=DEVICE, chips=("910B2",))))
    )
    while True:
        job = decode(socket.recv_multipart())
        if not isinstance(job, WireMessage) or not isinstance(job.payload, EvalRequest):
            raise SystemExit(f"expected a job, got {job}")
        began_s = time.monotonic()
        lease = (job.request_id, job.attempt)
        if service_s:
            socket.send_multipart(encode(WireMessage(Kind.WANT, *lease)))
            socket.recv_multipart()
            time.sleep(max(0.0, service_s - (time.monotonic() - began_s)))
            socket.send_multipart(encode(WireMessage(Kind.FREED, *lease)))
        result = answer_to(job.payload, service_s)
        socket.send_multipart(encode(WireMessage(Kind.RESULT, *lease, result)))


if __name__ == "__main__":
    main()
