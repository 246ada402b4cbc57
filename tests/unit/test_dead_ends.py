"""Addresses where something takes connections, and no daemon answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import gymnasium
import pytest
import zmq

import ascend_gym
from ascend_gym.client import ZmqEvaluator, connect, daemon_session
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError

PATIENCE_S = 0.1
NEVER_S = 3600.0
DEADLINE_S = 180.0


@contextmanager
def listening(treat: Callable[[socket.socket, ExitStack], object]) -> Iterator[str]:
    """Yield the address of a server that treats each connection in its way."""
    with ExitStack() as held, socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                treat(connection, held)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def a_tunnel_with_a_dead_end() -> Iterator[str]:
    """Accepts and closes, as ssh, load balancers and proxies do."""
    with listening(lambda connection, _: connection.close()) as address:
        yield address


@contextmanager
def an_open_port() -> Iterator[str]:
    """Accepts and says nothing."""
    with listening(lambda connection, held: held.enter_context(connection)) as address:
        yield address


@contextmanager
def a_silent_peer() -> Iterator[str]:
    """Shakes hands and answers nothing: a daemon that hangs, a proxy without a daemon behind it."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.LINGER, 0)
        port = router.bind_to_random_port("tcp://127.0.0.1")
        yield f"tcp://127.0.0.1:{port}"


@contextmanager
def a_peer_that_hangs_up() -> Iterator[str]:
    """Shakes hands and closes each connection."""
    with listening(_shake_and_close) as address:
        yield address


def _shake_and_close(connection: socket.socket, _: ExitStack) -> None:
    """Speak ZMTP 3.0 up to the end of the handshake."""
    ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER\x08Identity\x00\x00\x00\x00"
    with connection, connection.makefile("rb") as said:
        connection.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL".ljust(55, b"\0"))
        said.read(64)
        connection.sendall(b"\x04" + bytes([len(ready)]) + ready)
        _, size = said.read(2)
        said.read(size)


DEAD_ENDS = [a_tunnel_with_a_dead_end, an_open_port, a_silent_peer, a_peer_that_hangs_up]


@pytest.fixture(params=DEAD_ENDS, ids=lambda make: make.__name__)
def dead_end(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(daemon_session, "FIRST_ANSWER_S", PATIENCE_S)
    with request.param() as address:
        yield address


def test_connecting_ends_when_nobody_answers(dead_end: str) -> None:
    with pytest.raises(DaemonUnreachableError, match=r"no daemon has answered at tcp://.* for 0\.1 s"):
        connect(dead_end, connect_timeout_s=PATIENCE_S, start_timeout_s=NEVER_S)


def test_a_pool_of_dead_ends_has_no_daemon_in_service(dead_end: str) -> None:
    with a_tunnel_with_a_dead_end() as other, pytest.raises(DaemonUnreachableError, match="none of the"):
        connect([dead_end, other], connect_timeout_s=PATIENCE_S, start_timeout_s=NEVER_S)


def test_an_environment_ends_its_reset(dead_end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(address: str, **options: object) -> ZmqEvaluator:
        return connect(address, connect_timeout_s=PATIENCE_S, start_timeout_s=NEVER_S)

    monkeypatch.setattr("ascend_gym.client.connect", impatient)
    assert ascend_gym.__name__ == "ascend_gym"  # it registers the environment
    env = gymnasium.make("AscendOp-v0", operator="add", daemon=dead_end)
    with pytest.raises(InfrastructureError, match="no daemon has answered"):
        env.reset(seed=0)
    env.close()
