"""Nameless files that the trusted side creates and an untrusted program inherits as open descriptors.

The trusted side reads the program's output through a descriptor that existed before the program started.
There is no name under which the program could put a link, a folder or another file.
"""

from __future__ import annotations

import fcntl
import mmap
import os

from ascend_gym.core.closing import Closing

_SIZE_IS_FIXED = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
_ALL_IS_FIXED = _SIZE_IS_FIXED | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


class MemoryFile(Closing):
    """A file in memory, open in this process; ``run_limited`` passes it on with ``pass_fds``.

    Attributes:
        fd: descriptor, for reading and writing.
    """

    def __init__(self, name: str) -> None:
        """Create an empty file that grows as it is written, up to the limit of its writer."""
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)

    @classmethod
    def of_size(cls, name: str, size_bytes: int) -> MemoryFile:
        """Return a file of zeros with a fixed size."""
        file = cls(name)
        os.ftruncate(file.fd, size_bytes)
        fcntl.fcntl(file.fd, fcntl.F_ADD_SEALS, _SIZE_IS_FIXED)
        return file

    @classmethod
    def holding(cls, name: str, content: str) -> MemoryFile:
        """Return a read-only file."""
        file = cls(name)
        with open(os.dup(file.fd), "wb") as stream:
            stream.write(content.encode())
        fcntl.fcntl(file.fd, fcntl.F_ADD_SEALS, _ALL_IS_FIXED)
        return file

    @property
    def path(self) -> str:
        """Path under which a program that inherited the file can open it."""
        return f"/proc/self/fd/{self.fd}"

    @property
    def size_bytes(self) -> int:
        """Current size in bytes."""
        return os.fstat(self.fd).st_size

    def mapped(self) -> mmap.mmap | bytes:
        """Return its bytes, read-only and without a copy; they stay valid after ``close``."""
        return mmap.mmap(self.fd, 0, access=mmap.ACCESS_READ) if self.size_bytes else b""

    def close(self) -> None:
        """Close the file; its mappings stay valid."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
