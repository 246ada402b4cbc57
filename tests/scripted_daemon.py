"""A daemon whose every answer is the test's: one ROUTER socket that speaks our protocol."""

from __future__ import annotations

from collections.abc import Sequence

import zmq
from conftest import ok_result

from ascend_gym.core.codec import Kind, WireMessage, decode, encode
from ascend_gym.core.records import DaemonInfo, DeviceInfo, EvalRequest, EvalResult
from npu_daemon.pipeline import infra_error

TIMEOUT_MS = 180_000


def device(backend: str = "fake", chip: str = "910B2", toolchain: str = "1") -> DeviceInfo:
    return DeviceInfo(backend=backend, chip=chip, toolchain_digest=toolchain, sandbox="none", host="here")


class ScriptedDaemon:
    """Answers when it is told to; keeps what it was sent, by request id."""

    def __init__(
        self,
        address: str,
        *,
        slots: int = 1,
        chips: Sequence[str] = ("910B2",),
        describes: DeviceInfo | None = None,
    ) -> None:
        self.address = address
        self.info = DaemonInfo(device=describes or device(), chips=tuple(chips), slots=slots)
        self.requests: dict[str, EvalRequest] = {}
        self.submitted: list[str] = []
        self.cancelled: list[str] = []
        self._client = b""
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._socket.bind(address)

    def serve_once(self, timeout_ms: int = 0) -> None:
        """Take in what has arrived; questions about the daemon are answered."""
        while self._socket.poll(timeout_ms):
            timeout_ms = 0
            self._client, *frames = self._socket.recv_multipart()
            message = decode(frames)
            assert isinstance(message, WireMessage)
            if message.kind is Kind.DESCRIBE:
                self.send(WireMessage(Kind.DEVICE, payload=self.info))
            elif message.kind is Kind.CANCEL:
                self.cancelled.append(message.request_id)
            elif isinstance(message.payload, EvalRequest):
                self.requests[message.request_id] = message.payload
                self.submitted.append(message.request_id)

    def send(self, message: WireMessage) -> None:
        self.send_frames(encode(message))

    def send_frames(self, frames: Sequence[bytes]) -> None:
        self._socket.send_multipart([self._client, *frames])

    def answer(self, request_id: str, result: EvalResult | None = None, latency_us: float = 5.0) -> None:
        request = self.requests.pop(request_id)
        self.send(WireMessage(Kind.RESULT, request_id, payload=result or ok_result(request, latency_us)))

    def fail(self, request_id: str) -> None:
        self.answer(request_id, infra_error(self.requests[request_id], "the device fell off the bus"))

    def close(self) -> None:
        self._context.destroy()
