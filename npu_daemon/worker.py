"""A worker process: receives one job at a time from the broker, evaluates it and answers.

The main thread owns the socket. While the evaluating thread makes progress, the main thread keeps the
lease alive with heartbeats on the channel that carries the jobs, and requests a device for each run. If
a case takes longer than all its limits allow, the heartbeats stop and the broker replaces this process.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Protocol

import zmq

from ascend_gym.core.codec import CodecError, Kind, WireMessage, decode, encode
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.records import DaemonInfo, DeviceGrant, DeviceInfo, EvalRequest, EvalResult
from npu_daemon.case_runner import DeviceGate
from npu_daemon.pipeline import case_limit_s, infra_error

BEAT_INTERVAL_MS = 1000


class Service(Protocol):
    """Interface of a worker's service."""

    def describe(self) -> DeviceInfo:
        """Return the device that measures."""

    def chips(self) -> tuple[str, ...]:
        """Return the supported chips."""

    def answer(self, request: EvalRequest, on_case: Callable[[], None], device: DeviceGate) -> EvalResult:
        """Evaluate a request."""


@dataclass
class RunningJob:
    """The job of the evaluating thread."""

    job_id: str
    attempt: int
    request: EvalRequest
    progress_s: float
    future: Future[EvalResult] = field(default_factory=Future)
    waits: bool = False
    granted: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def may_continue(self, now_s: float) -> bool:
        """Whether the current case is within its time limits, excluding time spent waiting for a device."""
        return self.waits or now_s - self.progress_s < case_limit_s(self.request.protocol)


class Worker:
    """Serves one broker until this process is killed.

    Args:
        service: evaluates; see ``Service``.
        address: the broker's address for workers.
        worker_id: id that the broker assigned to this process.
    """

    def __init__(self, service: Service, address: str, worker_id: str) -> None:
        self._service = service
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evaluate")
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.IDENTITY, worker_id.encode())
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(address)
        self._wake_read, self._wake_write = os.pipe()
        self._to_send: SimpleQueue[WireMessage] = SimpleQueue()
        self._job: RunningJob | None = None

        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._wake_read, zmq.POLLIN)

    def run(self) -> None:
        """Announce readiness, then serve jobs forever."""
        self.announce()
        while True:
            self.serve_once(BEAT_INTERVAL_MS)

    def announce(self) -> None:
        """Report to the broker that this worker can take a job."""
        info = DaemonInfo(device=self._service.describe(), chips=self._service.chips())
        self._send(WireMessage(Kind.READY, payload=info))

    def serve_once(self, timeout_ms: int) -> None:
        """Wait up to ``timeout_ms`` for a job or its result; send the result, or a heartbeat.

        Raises:
            InfrastructureError: the broker sent something other than a job, or a second job.
        """
        ready = dict(self._poller.poll(timeout_ms))
        if self._wake_read in ready:
            os.read(self._wake_read, 64)
        done = self._job is not None and self._job.future.done()
        # Messages queued before the end of the job are sent before its result.
        while not self._to_send.empty():
            self._send(self._to_send.get())
        if done:
            self._answer()
        elif self._job is not None and self._job.may_continue(time.monotonic()):
            self._send(WireMessage(Kind.BEAT, self._job.job_id, self._job.attempt))
        if self._socket in ready:
            self._receive()

    def close(self) -> None:
        """Disconnect, after waiting for the current evaluation."""
        self._executor.shutdown()
        self._context.destroy()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _receive(self) -> None:
        message = decode(self._socket.recv_multipart())
        if isinstance(message, CodecError):
            raise InfrastructureError(f"the broker sent something else than a job: {message.reason}")
        if isinstance(message.payload, DeviceGrant):
            self._note_grant(message)
            return
        if not isinstance(message.payload, EvalRequest) or self._job is not None:
            raise InfrastructureError(f"the broker sent {message.kind.name} out of turn")
        job = self._job = RunningJob(message.request_id, message.attempt, message.payload, time.monotonic())
        job.future = self._executor.submit(self._evaluate, job)
        job.future.add_done_callback(lambda _: os.write(self._wake_write, b"x"))

    def _note_grant(self, message: WireMessage) -> None:
        job = self._job
        if job is not None and (job.job_id, job.attempt) == (message.request_id, message.attempt):
            job.waits = False
            job.progress_s = time.monotonic()
            job.granted.release()

    def _evaluate(self, job: RunningJob) -> EvalResult:
        request = job.request
        try:
            return self._service.answer(request, self._note_progress, partial(self._device, job))
        except Exception as error:  # noqa: BLE001 - the worker edge: a bug here must not look like the candidate's
            where = traceback.extract_tb(error.__traceback__)[-1]
            return infra_error(
                request,
                f"internal error, please report it: {type(error).__name__}: {error} "
                f"({os.path.basename(where.filename)}:{where.lineno})",
            )

    @contextmanager
    def _device(self, job: RunningJob) -> Iterator[None]:
        """Hold a device, from the evaluating thread; the main thread communicates with the broker."""
        job.waits = True
        self._tell(WireMessage(Kind.WANT, job.job_id, job.attempt))
        job.granted.acquire()
        try:
            yield
        finally:
            self._tell(WireMessage(Kind.FREED, job.job_id, job.attempt))

    def _tell(self, message: WireMessage) -> None:
        self._to_send.put(message)
        os.write(self._wake_write, b"x")

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
