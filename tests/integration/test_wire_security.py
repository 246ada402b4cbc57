"""Encrypted connections: who is let in, who is not, and what a stranger can do to a daemon (nothing)."""

from __future__ import annotations

import os
import re
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from ascend_gym.client.daemon_link import DaemonLink
from ascend_gym.core.codec import MAX_PAYLOAD_BYTES, Kind, WireMessage, encode
from ascend_gym.core.config import ENV_KEYS
from ascend_gym.core.curve_keys import client_keys, generate_keys, load_public_key, load_secret_key
from ascend_gym.core.errors import DaemonUnreachableError, MisuseError
from npu_daemon.broker.sockets import arrived, bind_router, send_to
from npu_daemon.security import CurvePolicy, Gatekeeper, check_bind_address, is_local

DEADLINE_S = 180.0
DEADLINE_MS = int(1000 * DEADLINE_S)


class GuardedServer:
    """A ROUTER behind a gatekeeper, turned by the test."""

    def __init__(self, folder: Path) -> None:
        self.context = zmq.Context()
        self.allowed = folder / "allowed"
        self.allowed.mkdir()
        generate_keys(folder, "daemon")
        policy = CurvePolicy(folder / "daemon.key_secret", self.allowed)
        self.gatekeeper = Gatekeeper(self.context, policy)
        self.router, self.address = bind_router(self.context, "tcp://127.0.0.1:*", 0, self.gatekeeper)
        self.poller = zmq.Poller()
        self.poller.register(self.router, zmq.POLLIN)
        self.poller.register(self.gatekeeper.socket, zmq.POLLIN)

    def serve_once(self, timeout_ms: int = DEADLINE_MS) -> list[tuple[bytes, str, WireMessage]]:
        """Wait for something, let the gatekeeper answer, and return the messages that got through."""
        ready = dict(self.poller.poll(timeout_ms))
        if self.gatekeeper.socket in ready:
            self.gatekeeper.answer()
        return [
            (each.peer, each.tenant, each.message)
            for each in arrived(self.router, guarded=True)
            if isinstance(each.message, WireMessage)
        ]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GuardedServer]:
    server = GuardedServer(tmp_path)
    yield server
    server.context.destroy(0)


@pytest.fixture
def keys(tmp_path: Path, server: GuardedServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The keys of a client that knows the daemon, in the folder where clients look."""
    folder = tmp_path / "keys"
    generate_keys(folder, "client")
    (folder / "127.0.0.1.key").write_bytes((tmp_path / "daemon.key").read_bytes())
    monkeypatch.setenv(ENV_KEYS, str(folder))
    return folder


def test_an_allowed_client_is_known_by_the_name_of_its_key(server: GuardedServer, keys: Path) -> None:
    (server.allowed / "alice.key").write_bytes((keys / "client.key").read_bytes())
    link = DaemonLink(server.address, connect_timeout_s=60)
    link.send(WireMessage(Kind.DESCRIBE))
    messages: list[tuple[bytes, str, WireMessage]] = []
    while not messages:
        messages = server.serve_once()
    ((peer, tenant, message),) = messages
    assert (tenant, message.kind) == ("alice", Kind.DESCRIBE)
    assert send_to(server.router, peer, WireMessage(Kind.BEAT))
    answers: list[WireMessage] = []
    while not answers:
        zmq.select(link.sources, [], [], 10)
        answers = link.received()
    assert answers == [WireMessage(Kind.BEAT)]
    assert not send_to(server.router, b"nobody", WireMessage(Kind.BEAT))
    link.close()


def wait_until_told(server: GuardedServer, link: DaemonLink, reason: str) -> None:
    """Wait until the daemon is unreachable for this reason; before its answer another one may be told."""
    deadline_s, told = time.monotonic() + DEADLINE_S, ""
    while not re.search(reason, told):
        assert time.monotonic() < deadline_s, told
        assert server.serve_once(20) == []
        link.received()
        try:
            link.check_reachable()
        except DaemonUnreachableError as error:
            told = str(error)


def test_a_client_whose_key_is_not_allowed_is_told_so(server: GuardedServer, keys: Path) -> None:
    link = DaemonLink(server.address, connect_timeout_s=0.2)
    link.send(WireMessage(Kind.DESCRIBE))
    wait_until_told(server, link, r"refuses the connection.*client\.key copied")
    link.close()


def test_a_key_of_another_daemon_on_the_host_is_named_and_can_be_kept_to_its_port(
    server: GuardedServer, keys: Path
) -> None:
    router, address = bind_router(server.context, "tcp://127.0.0.1:*", 0)  # without keys
    link = DaemonLink(address, connect_timeout_s=0.2)
    link.send(WireMessage(Kind.DESCRIBE))
    wait_until_told(server, link, r"127\.0\.0\.1\.key was taken for its key.*no keys.*HOST:PORT\.key")
    link.close()
    (keys / "127.0.0.1.key").rename(keys / f"{server.address.removeprefix('tcp://')}.key")
    link = DaemonLink(address, connect_timeout_s=60)
    link.send(WireMessage(Kind.DESCRIBE))
    assert router.poll(DEADLINE_MS)
    link.close()
    guarded = client_keys(server.address, keys)
    assert guarded is not None
    assert guarded.daemon == load_public_key(keys / f"{server.address.removeprefix('tcp://')}.key")
    assert client_keys(address, keys) is None


def test_a_client_without_keys_gets_nothing_through(server: GuardedServer) -> None:
    link = DaemonLink(server.address, connect_timeout_s=0.2)
    link.send(WireMessage(Kind.DESCRIBE))
    wait_until_told(server, link, "refuses the connection")
    link.close()


def test_an_expelled_client_is_let_in_again_when_its_key_is_written_again(
    server: GuardedServer, keys: Path
) -> None:
    key = server.allowed / "alice.key"
    key.write_bytes((keys / "client.key").read_bytes())
    server.gatekeeper.expel("alice")
    link = DaemonLink(server.address, connect_timeout_s=0.2)
    link.send(WireMessage(Kind.DESCRIBE))
    wait_until_told(server, link, "refuses the connection")
    link.close()
    os.utime(key, ns=(1, 1))
    test_an_allowed_client_is_known_by_the_name_of_its_key(server, keys)
    assert server.gatekeeper.lapsed() == []
    key.unlink()
    assert (server.gatekeeper.lapsed(), server.gatekeeper.lapsed()) == (["alice"], [])


def test_bytes_that_are_no_handshake_are_harmless(server: GuardedServer, keys: Path) -> None:
    host, _, port = server.address.removeprefix("tcp://").rpartition(":")
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" + b"\x00" * 63, b"\x00" * 5000):
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(data)
    test_an_allowed_client_is_known_by_the_name_of_its_key(server, keys)


def test_a_frame_beyond_the_limit_ends_the_connection_before_it_is_read(tmp_path: Path) -> None:
    with zmq.Context() as context:
        router, address = bind_router(context, f"ipc://{tmp_path}/s", 0)
        for frames in ([bytes(MAX_PAYLOAD_BYTES + 1)], encode(WireMessage(Kind.DESCRIBE))):
            with context.socket(zmq.DEALER) as dealer:
                dealer.setsockopt(zmq.LINGER, 0)
                dealer.setsockopt(zmq.RECONNECT_IVL, -1)
                dealer.connect(address)
                dealer.send_multipart(frames)
                assert bool(router.poll(1000 if len(frames) == 1 else DEADLINE_MS)) == (len(frames) > 1)
        (arrival,) = arrived(router)
        assert arrival.message == WireMessage(Kind.DESCRIBE)
        router.close(0)


def test_public_addresses_need_keys(tmp_path: Path) -> None:
    policy = CurvePolicy(tmp_path / "k", tmp_path)
    for address in ("tcp://0.0.0.0:5710", "tcp://*:5710", "tcp://10.1.2.3:1", "tcp://example.org:1"):
        assert not is_local(address)
        with pytest.raises(MisuseError, match="keygen"):
            check_bind_address(address)
        check_bind_address(address, policy)


def test_a_policy_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    generate_keys(tmp_path, "daemon")
    secret = tmp_path / "daemon.key_secret"
    with zmq.Context() as context:
        with pytest.raises(MisuseError, match="no folder"):
            Gatekeeper(context, CurvePolicy(secret, tmp_path / "nowhere"))
        secret.chmod(0o644)
        with pytest.raises(MisuseError, match="chmod 600"):
            Gatekeeper(context, CurvePolicy(secret, tmp_path))


def test_key_files(tmp_path: Path) -> None:
    public, secret = generate_keys(tmp_path, "alice")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert load_secret_key(secret)[0] == load_public_key(public)
    with pytest.raises(MisuseError, match="exists already"):
        generate_keys(tmp_path, "alice")
    with pytest.raises(MisuseError, match="no secret key"):
        load_secret_key(public)
    with pytest.raises(MisuseError, match="keygen"):
        load_public_key(tmp_path / "nobody.key")
    (tmp_path / "bad.key").write_text("nonsense")
    policy = CurvePolicy(secret, tmp_path)
    assert policy.tenant_of(load_public_key(public)) == "alice"
    assert policy.tenant_of(b"x" * 40) is None
