"""Files without a name, that the trusted side makes and an untrusted program finds open.

What such a program leaves is read through the descriptor that was there before it started: it has no name to
put a link, a folder or another file under.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from types import TracebackType

_SIZE_IS_FIXED = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
_ALL_IS_FIXED = _SIZE_IS_FIXED | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


class MemoryFile:
    """A file in memory, open in this process; ``run_limited`` hands it on by ``pass_fds``.

    Attributes:
        fd: its descriptor, for reading and writing.
    """

    def __init__(self, name: str) -> None:
        """Make an empty file that grows as it is written, up to the limit of its writer."""
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)

    @classmethod
    def of_size(cls, name: str, size_bytes: int) -> MemoryFile:
        """Return a file of zeros that nobody can make longer or shorter."""
        file = cls(name)
        os.ftruncate(file.fd, size_bytes)
        fcntl.fcntl(file.fd, fcntl.F_ADD_SEALS, _SIZE_IS_FIXED)
        return file

    @classmethod
    def holding(cls, name: str, content: str) -> MemoryFile:
        """Return a file that nobody can change."""
        file = cls(name)
        with open(os.dup(file.fd), "wb") as stream:
            stream.write(content.encode())
        fcntl.fcntl(file.fd, fcntl.F_ADD_SEALS, _ALL_IS_FIXED)
        return file

    @property
    def path(self) -> str:
        """The name under which a program that inherited the file opens it."""
        return f"/proc/self/fd/{self.fd}"

    @property
    def size_bytes(self) -> int:
        """How long it is now."""
        return os.fstat(self.fd).st_size

    def mapped(self) -> mmap.mmap | bytes:
        """Return its bytes, read-only, without a copy; they outlive ``close``."""
        return mmap.mmap(self.fd, 0, access=mmap.ACCESS_READ) if self.size_bytes else b""

    def close(self) -> None:
        """Give the file up; what was mapped of it stays."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def __enter__(self) -> MemoryFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
