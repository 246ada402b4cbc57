"""A client that may be killed at any time: the next one goes on under its name, for ``service_chaos.py``.

It asks for jobs ``FIRST, FIRST + STEP, ...`` of one operator, and writes each answer down once.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import zmq

from ascend_gym.core.codec import Kind, WireMessage, decode, encode
from ascend_gym.core.config import keys_folder
from ascend_gym.core.curve_keys import client_keys
from ascend_gym.core.records import EvalRequest, EvalResult, OpSpec, PhaseSeconds
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator

NAME = "chaos-client"
OPERATOR = "core/add"
WINDOW = 25
RESEND_MS = 2_000
HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 1_000, 4_000
_WRONG = {"AscendC::Add(": "AscendC::Sub(", "CopyOut(": "CopyOutt("}


def request(spec: OpSpec, job: int, variants: int) -> EvalRequest:
    """Return the request of a job: one of so many kernels, of which some are wrong and some do not compile.

    It is evaluated for each job, and may find what earlier ones have built.
    """
    number = job % variants
    kernel = spec.baseline.kernel_text
    for at, (text, instead) in enumerate(_WRONG.items()):
        if number % 8 == 6 + at:
            kernel = kernel.replace(text, instead, 1)
    smallest = min(spec.cases, key=lambda case: case.traffic_bytes)
    return EvalRequest(
        op_id=spec.op_id,
        folder_digest=spec.folder_digest,
        candidate=spec.baseline.rewritten(kernel=f"// {number}\n{kernel}"),
        case_ids=(smallest.case_id,),
        use_cache=False,
    )


def comparable(result: EvalResult) -> str:
    """Return what has to be equal in every run, as JSON: everything but times."""
    charge = result.charge.model_copy(update={"device_seconds": 0.0})
    return result.model_copy(update={"seconds": PhaseSeconds(), "charge": charge}).model_dump_json()


def answered_before(path: Path) -> set[int]:
    """Return the jobs whose answers are on file, without the line that a killed client did not finish."""
    if not path.exists():
        return set()
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        path.write_bytes(whole)
    return {json.loads(line)["job"] for line in whole.splitlines()}


class Client:
    """Asks for jobs under names that another client would use too: job and attempt."""

    def __init__(self, address: str, answers: Path, jobs: range, variants: int) -> None:
        self._spec, self._variants = load_operator(OPERATOR), variants
        answered = answered_before(answers)
        self._missing = [job for job in jobs if job not in answered]
        self._attempts = dict.fromkeys(self._missing, 0)
        self._sent: set[int] = set()
        self._log = answers.open("a")
        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        for option, value in (
            (zmq.LINGER, 0),
            (zmq.HEARTBEAT_IVL, HEARTBEAT_MS),
            (zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS),
            (zmq.RECONNECT_IVL_MAX, 1_000),
        ):
            self._socket.setsockopt(option, value)
        keys = client_keys(address, keys_folder())
        if keys is not None:
            keys.guard(self._socket)
        self._socket.connect(address)

    def run(self) -> None:
        """Ask until all is answered; what stays unanswered for long is asked again."""
        while self._missing:
            for job in self._missing[:WINDOW]:
                self._submit(job)
            if not self._socket.poll(RESEND_MS):
                self._sent.clear()
                continue
            message = decode(self._socket.recv_multipart())
            if isinstance(message, WireMessage) and isinstance(message.payload, EvalResult):
                self._take(message.request_id, message.payload)

    def _submit(self, job: int) -> None:
        if job not in self._sent:
            self._sent.add(job)
            name = f"{NAME}.{job}-{self._attempts[job]}"
            message = WireMessage(Kind.SUBMIT, name, payload=request(self._spec, job, self._variants))
            self._socket.send_multipart(encode(message), zmq.DONTWAIT)

    def _take(self, name: str, result: EvalResult) -> None:
        job, attempt = (int(part) for part in name.rpartition(".")[2].split("-"))
        if job not in self._missing or attempt != self._attempts[job]:
            return
        if result.status is Status.INFRA_ERROR:
            self._attempts[job] += 1
            self._sent.discard(job)
            return
        self._log.write(json.dumps({"job": job, "result": comparable(result)}) + "\n")
        self._log.flush()
        self._missing.remove(job)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("answers", type=Path)
    for option in ("first", "jobs", "step", "variants"):
        parser.add_argument(f"--{option}", type=int, required=True)
    given = parser.parse_args()
    Client(given.address, given.answers, range(given.first, given.jobs, given.step), given.variants).run()
