"""The connections of tenants to a daemon with keys, so that they can be counted and cut."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class _Connection:
    tenant: str
    peer: bytes
    inode: int


@dataclass
class Connections:
    """Connections over which something has come, by descriptor.

    ZeroMQ closes them in a thread of its own and gives descriptors away again: what is still the same
    connection is told by its inode.
    """

    _by_fd: dict[int, _Connection] = field(default_factory=dict)

    def note(self, fd: int, tenant: str, peer: bytes) -> None:
        """Remember a connection over which a message has come."""
        known = self._by_fd.get(fd)
        if known is None or (known.tenant, known.peer) != (tenant, peer):
            with suppress(OSError):  # it has just ended
                self._by_fd[fd] = _Connection(tenant, peer, os.fstat(fd).st_ino)

    def count(self) -> Counter[str]:
        """Return the number of open connections of each tenant; closed ones are forgotten."""
        for fd, connection in list(self._by_fd.items()):
            with _opened(fd, connection) as still:
                if still is None:
                    del self._by_fd[fd]
        return Counter(each.tenant for each in self._by_fd.values())

    def cut(self, tenant: str) -> int:
        """Close all connections of a tenant; return how many there were."""
        cut = 0
        for fd, connection in [each for each in self._by_fd.items() if each[1].tenant == tenant]:
            del self._by_fd[fd]
            with _opened(fd, connection) as still:
                if still is not None:
                    still.shutdown(socket.SHUT_RDWR)
                    cut += 1
        return cut


@contextmanager
def _opened(fd: int, connection: _Connection) -> Iterator[socket.socket | None]:
    """Yield a connection under a descriptor of our own; ``None`` if it has ended."""
    try:
        own = socket.socket(fileno=os.dup(fd))
    except OSError:
        yield None
        return
    with own, suppress(OSError):
        yield own if os.fstat(own.fileno()).st_ino == connection.inode else None
