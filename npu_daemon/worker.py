"""A worker process: takes one job at a time from the broker, evaluates it and answers.

The main thread owns the socket. While the evaluating thread makes progress, the main thread confirms the
lease with heartbeats on the channel that carries the jobs; when a case takes longer than all its limits
allow, the heartbeats end and the broker replaces this process.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import zmq

from ascend_gym.core.codec import CodecError, Kind, WireMessage, decode, encode
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.records import DaemonInfo, EvalRequest, EvalResult
from npu_daemon.pipeline import case_limit_s, infra_error
from npu_daemon.sandbox.server import PR_SET_PDEATHSIG, prctl
from npu_daemon.service import EvaluationService

BEAT_INTERVAL_MS = 1000


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent ends, however that happens.

    Raises:
        InfrastructureError: the parent is gone already.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        raise InfrastructureError(f"parent process {parent_pid} is gone")


@dataclass
class RunningJob:
    """The job that the evaluating thread works on."""

    job_id: str
    attempt: int
    request: EvalRequest
    future: Future[EvalResult]
    progress_s: float

    def may_continue(self, now_s: float) -> bool:
        """Whether the current case is within the time that its limits allow."""
        return now_s - self.progress_s < case_limit_s(self.request.protocol)


class Worker:
    """Serves one broker until this process is killed.

    Args:
        service: evaluates.
        address: the broker's address for workers.
        worker_id: the id that the broker gave to this process.
    """

    def __init__(self, service: EvaluationService, address: str, worker_id: str) -> None:
        self._service = service
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evaluate")
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.IDENTITY, worker_id.encode())
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(address)
        self._wake_read, self._wake_write = os.pipe()
        self._job: RunningJob | None = None

        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._wake_read, zmq.POLLIN)

    def run(self) -> None:
        """Announce readiness, then serve jobs for ever."""
        self.announce()
        while True:
            self.turn(BEAT_INTERVAL_MS)

    def announce(self) -> None:
        """Tell the broker that this worker can take a job."""
        info = DaemonInfo(device=self._service.describe(), chips=self._service.chips())
        self._send(WireMessage(Kind.READY, payload=info))

    def turn(self, timeout_ms: int) -> None:
        """Wait up to ``timeout_ms`` for a job or its result, and answer or confirm the lease.

        Raises:
            InfrastructureError: the broker sent something else than a job, or a second one.
        """
        ready = dict(self._poller.poll(timeout_ms))
        if self._wake_read in ready:
            os.read(self._wake_read, 1)
            self._answer()
        elif self._job is not None and self._job.may_continue(time.monotonic()):
            self._send(WireMessage(Kind.BEAT, self._job.job_id, self._job.attempt))
        if self._socket in ready:
            self._receive()

    def close(self) -> None:
        """Disconnect; an evaluation that runs is awaited."""
        self._executor.shutdown()
        self._context.destroy()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _receive(self) -> None:
        message = decode(self._socket.recv_multipart())
        if isinstance(message, CodecError):
            raise InfrastructureError(f"the broker sent something else than a job: {message.reason}")
        if not isinstance(message.payload, EvalRequest) or self._job is not None:
            raise InfrastructureError(f"the broker sent {message.kind.name} out of turn")
        request = message.payload
        self._job = RunningJob(
            message.request_id,
            message.attempt,
            request,
            self._executor.submit(self._evaluate, request),
            time.monotonic(),
        )
        self._job.future.add_done_callback(lambda _: os.write(self._wake_write, b"x"))

    def _evaluate(self, request: EvalRequest) -> EvalResult:
        try:
            return self._service.answer(request, self._note_progress)
        except Exception as error:  # noqa: BLE001 - the worker edge: a bug here must not look like the candidate's
            where = traceback.extract_tb(error.__traceback__)[-1]
            return infra_error(
                request,
                f"internal error, please report it: {type(error).__name__}: {error} "
                f"({os.path.basename(where.filename)}:{where.lineno})",
            )

    def _note_progress(self) -> None:
        if self._job is not None:
            self._job.progress_s = time.monotonic()

    def _answer(self) -> None:
        job, self._job = self._job, None
        if job is None:
            return
        result = job.future.result()
        try:
            self._send(WireMessage(Kind.RESULT, job.job_id, job.attempt, result))
        except ValueError as error:
            unsent = infra_error(job.request, f"the result cannot be sent: {error}")
            self._send(WireMessage(Kind.RESULT, job.job_id, job.attempt, unsent))

    def _send(self, message: WireMessage) -> None:
        self._socket.send_multipart(encode(message))
