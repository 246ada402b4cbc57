"""Confinement of untrusted programs: the levels that this host offers, and their rules as data.

There are three levels, of which the best available one is used:

- ``landlock+seccomp+rlimits`` (Linux 5.13 or newer): the kernel refuses every file outside a list, TCP (6.7)
  and the system calls of ``seccomp``, which on any version cover networks and other processes. Nothing
  has to be installed.
- ``bubblewrap+seccomp+rlimits``: separate mounts and namespaces, if user namespaces are allowed.
- ``rlimits``: limits only. A candidate could read and write whatever the daemon's user can.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from npu_daemon.sandbox.seccomp import architecture_is_known, packed_filter

Level = Literal["landlock+seccomp+rlimits", "bubblewrap+seccomp+rlimits", "rlimits"]
LANDLOCK: Level = "landlock+seccomp+rlimits"
BUBBLEWRAP: Level = "bubblewrap+seccomp+rlimits"
RLIMITS: Level = "rlimits"
CONFINING = (LANDLOCK, BUBBLEWRAP)
"""Levels at which a program can only open its own files for writing."""

# linux/landlock.h: rights by the version of the interface that introduced them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE, _MAKE_DIR, _MAKE_REG = 1 << 4 | 1 << 5, 1 << 7, 1 << 8
_RIGHTS_OF_1 = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_TCP = 1 << 0 | 1 << 1
_SCOPES = 1 << 0 | 1 << 1  # abstract sockets, signals
_READ = _READ_FILE | _READ_DIR
# No symbolic links, pipes, sockets or devices, because the trusted side reads the remaining files.
_OWN = _READ | _WRITE_FILE | _REMOVE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE

_CREATE_RULESET = 444
_VERSION_FLAG = 1

_SYSTEM = (
    *("/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share"),
    *("/usr/x86_64-linux-gnu", "/usr/aarch64-linux-gnu", "/usr/local/include"),
    *("/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_LOADERS = (("/lib64", "ld-linux*"), ("/lib", "ld-linux*"), ("/lib", "ld-musl*"))


@dataclass(frozen=True)
class Reach:
    """Files that a program may use besides the system's, its own executable and its working folder.

    Attributes:
        readable: files and complete folders that it may read.
        starts_programs: whether it may start programs of the system, as a compiler driver does.
        programs: folders with further programs that it may then start, such as a vendor's toolkit.
        keeps_files: whether it may create and write files in its working folder; otherwise it can only read
            there, and only writes to open descriptors remain.
    """

    readable: tuple[Path, ...] = ()
    starts_programs: bool = False
    programs: tuple[Path, ...] = ()
    keeps_files: bool = True


def sandbox_level() -> Level:
    """Return the level of confinement on this host, for ``DeviceInfo.sandbox``."""
    return _best_level()


def confined_spec(
    executable: str, cwd: Path, reach: Reach, environment: Mapping[str, str], level: Level
) -> dict[str, Any]:
    """Return instructions for the process server to confine a program before executing it.

    Args:
        executable: program.
        cwd: working directory.
        reach: files that it may read, write and execute.
        environment: environment variables.
        level: level of confinement.

    Returns:
        ``seccomp``: the filter and where the program's own id belongs in it (``packed_filter``);
        ``landlock``: rights handled and rules; or ``wrapper``: a command to put before the program, which
        installs the filter itself.
    """
    if level == RLIMITS:
        return {}
    system = _system_folders(environment.get("LD_LIBRARY_PATH", ""))
    calls = packed_filter(starts_programs=reach.starts_programs, signals_others=level == BUBBLEWRAP)
    if level == BUBBLEWRAP:
        return {"seccomp": calls, "wrapper": _bubblewrap(executable, cwd, reach, system)}
    return {"seccomp": calls, "landlock": _landlock(executable, cwd, reach, system)}


@functools.cache
def _best_level() -> Level:
    if not architecture_is_known():
        return RLIMITS
    if landlock_version() >= 1:
        return LANDLOCK
    return BUBBLEWRAP if _bubblewrap_works() else RLIMITS


@functools.cache
def landlock_version() -> int:
    """Return the version of the kernel's Landlock interface, or 0 when there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    version: int = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(version, 0)


def _bubblewrap_works() -> bool:
    program = shutil.which("bwrap")
    if program is None:
        return False
    command = [program, "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@functools.cache
def _system_folders(library_path: str) -> tuple[str, ...]:
    """Return the files that the loader and programs of the system need."""
    libraries = tuple(each for each in library_path.split(":") if each)
    return tuple(_existing((*_SYSTEM, *libraries)))


def _landlock(executable: str, cwd: Path, reach: Reach, system_folders: tuple[str, ...]) -> dict[str, Any]:
    version = landlock_version()
    handled = _RIGHTS_OF_1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE)):
        handled |= right if version >= since else 0
    system = _READ | _EXECUTE if reach.starts_programs else _READ
    rules = [
        *((path, system) for path in system_folders),
        *((path, _READ_FILE | _WRITE_FILE) for path in _DEVICES),
        ("/proc/self", _READ),
        *((path, _EXECUTE) for path in _loaders()),
        (executable, _READ_FILE | _EXECUTE),
        *((str(path), _READ) for path in reach.readable),
        *((str(path), system) for path in reach.programs),
        (str(cwd), (_OWN if reach.keeps_files else _READ) | (_EXECUTE if reach.starts_programs else 0)),
    ]
    return {
        "files": handled,
        "tcp": _TCP if version >= 4 else None,
        "scopes": _SCOPES if version >= 6 else None,
        "rules": [(path, rights & handled) for path, rights in rules],
    }


@functools.cache
def _loaders() -> tuple[str, ...]:
    return tuple(str(path) for folder, pattern in _LOADERS for path in Path(folder).glob(pattern))


def _bubblewrap(executable: str, cwd: Path, reach: Reach, system_folders: tuple[str, ...]) -> list[str]:
    """Return the bubblewrap command for a program; ``{seccomp}`` stands for the filter's descriptor."""
    program = shutil.which("bwrap") or "bwrap"
    shown = [*system_folders, executable, *(str(path) for path in (*reach.readable, *reach.programs))]
    binds = [part for path in _existing(shown) for part in ("--ro-bind", path, path)]
    return [
        *(program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *binds,
        *(
            "--bind" if reach.keeps_files else "--ro-bind",
            str(cwd),
            str(cwd),
            "--chdir",
            str(cwd),
            "--seccomp",
            "{seccomp}",
            "--",
        ),
    ]


def _existing(paths: Iterable[str]) -> list[str]:
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]
