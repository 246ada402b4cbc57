"""A client that may be killed at any time: the next one goes on under its name, for ``service_chaos.py``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import zmq

from ascend_gym.core.codec import Kind, WireMessage, decode, encode
from ascend_gym.core.records import EvalRequest, EvalResult, OpSpec, PhaseSeconds
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator

NAME = "chaos-client"
WINDOW = 100
RESEND_MS = 2_000
OPERATOR = {
    "op.toml": """
[operator]
type = "Double"
level = 1
category = "elementwise"
description = "twice the input"
auto_sync = true
[tolerance.float32]
atol = 1e-6
rtol = 1e-6
[[case]]
id = "only"
[[case.input]]
name = "x"
dtype = "float32"
shape = [4, 64]
[[case.output]]
name = "y"
dtype = "float32"
shape = [4, 64]
""",
    "reference.py": "def reference(inputs, attributes):\n    return {'y': inputs['x'] * 2.0}\n",
    "op_host/double_it.cpp": (
        "static ge::graphStatus TilingFunc(gert::TilingContext* context) { return 0; }\n"
    ),
    "op_kernel/double_it.cpp": ('extern "C" __global__ __aicore__ void double_it(GM_ADDR x, GM_ADDR y) {}\n'),
}


def operator(folder: Path) -> OpSpec:
    """Return the operator, written below ``folder`` by whoever comes first."""
    for name, text in OPERATOR.items():
        path = folder / "double_it" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(text)
        scratch.replace(path)
    return load_operator("local/double_it", op_dir=folder / "double_it")


def request(spec: OpSpec, job: int) -> EvalRequest:
    """Return the request of a job; nothing of it may come from the store of results."""
    return EvalRequest(
        op_id=spec.op_id,
        op_folder=spec.folder,
        folder_digest=spec.folder_digest,
        candidate=spec.baseline.rewritten(kernel=f"// {job}\n{spec.baseline.kernel_text}"),
        use_cache=False,
    )


def comparable(result: EvalResult) -> str:
    """Return what has to be equal in every run, as JSON."""
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

    def __init__(self, address: str, folder: Path, jobs: int) -> None:
        self._spec = operator(folder)
        path = folder / "answers.jsonl"
        answered = answered_before(path)
        self._missing = [job for job in range(jobs) if job not in answered]
        self._attempts = dict.fromkeys(self._missing, 0)
        self._sent: set[int] = set()
        self._log = path.open("a")
        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
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
            message = WireMessage(Kind.SUBMIT, name, payload=request(self._spec, job))
            self._socket.send_multipart(encode(message))

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
    Client(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])).run()
