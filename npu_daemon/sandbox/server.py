"""Process server of the sandbox: a script of the standard library alone, run as ``python -I -S``.

It is a small single-threaded process, so that forking it is cheap and safe. For every run it forks one
supervisor, which starts the program with its limits, watches it, kills everything that the program left
behind and reports. A supervisor is a child subreaper: processes that fork twice or change their session
become its children, and ``ECHILD`` from ``wait`` proves that none of them is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MAX_PASSED_FDS = 64
WATCH_INTERVAL_S = 0.02
KILL_TIMEOUT_S = 5.0
SIGNAL_EXIT = 128  # plus its number: how a wrapper reports the signal that ended its program

_LIBC = ctypes.CDLL(None, use_errno=True)

Program = Callable[[list[str], list[int]], NoReturn]
"""Function that runs in place of an executable, with the arguments and the inherited descriptors."""


def prctl(option: int, value: int) -> None:
    """Call ``prctl(2)``.

    Raises:
        OSError: the kernel refuses.
    """
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def run_first() -> None:
    """Give this process priority, if permitted: a fork bomb grows while its supervisor waits."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def children_of(pid: int) -> list[int]:
    """Return the current children of ``pid`` according to /proc; empty if it has ended."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found.extend(int(child) for child in file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        return found
    return found


def descendants_of(pid: int) -> list[int]:
    """Return all current processes below ``pid``."""
    found = children_of(pid)
    for child in found:
        found.extend(children_of(child))
    return found


def count_tasks(pids: list[int]) -> int:
    """Return the number of threads of ``pids`` together."""
    total = 0
    for pid in pids:
        try:
            total += len(os.listdir(f"/proc/{pid}/task"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def send_signal(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_trees(roots: list[int]) -> None:
    """Kill ``roots`` and everything below them.

    Each process is stopped before its children are listed, so that it cannot fork new ones
    however fast the tree grows. Orphans become children of this process.
    """
    found = list(roots)
    for pid in found:
        send_signal(pid, signal.SIGSTOP)
        found.extend(children_of(pid))
    for pid in found:
        send_signal(pid, signal.SIGKILL)


def kill_and_reap(program: int, statuses: dict[int, int]) -> bool:
    """Kill and reap all descendants, recording wait statuses; return whether none is left.

    The process group of ``program`` is killed atomically, however fast it grows; processes that left the
    group are killed one by one. SIGCHLD must be blocked, so that it can be waited for.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program, signal.SIGKILL)
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                statuses[reaped[0]] = reaped[1]
        except ChildProcessError:
            return True
        kill_trees(children_of(os.getpid()))
        signal.sigtimedwait([signal.SIGCHLD], 0.01)
    return False


def cpu_limit_s(spec: dict[str, Any]) -> int:
    """Return the CPU limit in whole seconds, as the kernel counts it."""
    seconds: float = spec["cpu_s"]
    return max(1, math.ceil(seconds))


def set_limits(spec: dict[str, Any]) -> None:
    """Apply the resource limits of ``spec`` to this process and everything it starts."""
    cpu_s = cpu_limit_s(spec)
    for name, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_AS, spec["memory_bytes"], spec["memory_bytes"]),
        (resource.RLIMIT_FSIZE, spec["file_bytes"], spec["file_bytes"]),
        (resource.RLIMIT_NOFILE, spec["open_files"], spec["open_files"]),
    ):
        ceiling = resource.getrlimit(name)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(name, (soft, hard))


def place_fds(sources: list[int], targets: list[int]) -> None:
    """Duplicate each of ``sources`` to the corresponding number in ``targets``."""
    moved = [above(fd, targets) for fd in sources]
    for source, target in zip(moved, targets, strict=True):
        os.dup2(source, target)


def above(fd: int, targets: list[int]) -> int:
    """Return a private copy of ``fd`` whose number is larger than all of ``targets``."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(targets) + 1)


LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_PATH_BENEATH = 1
LANDLOCK_FILE_RIGHTS = 0xC007  # execute, write, read, truncate, ioctl: others are about folders only
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def kernel_call(number: int, *arguments: Any) -> int:
    """Make a system call that the C library does not wrap.

    Raises:
        OSError: the kernel refuses.
    """
    answer: int = _LIBC.syscall(ctypes.c_long(number), *arguments)
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"system call {number}: {os.strerror(code)}")
    return answer


def restrict_files(rules: dict[str, Any]) -> None:
    """Drop all rights to files, TCP and signals except those of ``rules`` (landlock(7))."""
    parts = [rules["files"], *(rules[name] for name in ("tcp", "scopes") if rules[name] is not None)]
    handled = struct.pack(f"={len(parts)}Q", *parts)
    ruleset = kernel_call(LANDLOCK_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), ctypes.c_uint32(0))
    for path, rights in rules["rules"]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= LANDLOCK_FILE_RIGHTS
        beneath = struct.pack("=Qi", rights, fd)
        kernel_call(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_BENEATH, beneath, ctypes.c_uint32(0))
        os.close(fd)
    kernel_call(LANDLOCK_RESTRICT_SELF, ruleset, ctypes.c_uint32(0))
    os.close(ruleset)


def refuse_calls(program: bytes) -> None:
    """Install a filter of system calls (seccomp(2)) for this process and everything it starts.

    Raises:
        OSError: the kernel refuses the filter.
    """
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    if _LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_SECCOMP): {os.strerror(number)}")


def filter_bytes(packed: str, own_pid_at: list[int]) -> bytes:
    """Return an array of ``struct sock_filter`` with this process's id at the offsets where it belongs."""
    program = bytearray.fromhex(packed)
    for offset_bytes in own_pid_at:
        struct.pack_into("=I", program, offset_bytes, os.getpid())
    return bytes(program)


def confine(spec: dict[str, Any]) -> tuple[str, list[str]]:
    """Drop the rights that ``spec`` excludes; return the executable and its arguments."""
    executable, arguments = spec["executable"], spec["argv"]
    if "seccomp" not in spec:
        return executable, arguments
    program = filter_bytes(*spec["seccomp"])
    if "wrapper" in spec:
        filter_fd = os.memfd_create("seccomp", 0)
        os.write(filter_fd, program)
        os.lseek(filter_fd, 0, os.SEEK_SET)
        wrapper = [str(filter_fd) if part == "{seccomp}" else part for part in spec["wrapper"]]
        return wrapper[0], [*wrapper, executable, *arguments[1:]]
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    restrict_files(spec["landlock"])
    refuse_calls(program)
    return executable, arguments


def become_program(
    spec: dict[str, Any], streams: list[int], passed: list[int], parent: int, program: Program | None
) -> NoReturn:
    """Turn this freshly forked process into the program.

    Args:
        spec: the supervisor's instructions.
        streams: descriptors of standard output and standard error.
        passed: descriptors to pass on.
        parent: process id of the supervisor.
        program: preloaded program, if any.

    Raises:
        OSError: a step fails.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(spec["cwd"])
    place_fds([os.open(os.devnull, os.O_RDONLY), *streams, *passed], [0, 1, 2, *spec["fds"]])
    set_limits(spec)
    executable, arguments = confine(spec)
    if program is None:
        os.execve(executable, arguments, spec["env"])
    program(arguments, spec["fds"])


def start_program(
    spec: dict[str, Any], streams: list[int], passed: list[int], program: Program | None
) -> tuple[int, str | None]:
    """Fork and execute the program.

    Args:
        spec: the supervisor's instructions.
        streams: descriptors of standard output and standard error.
        passed: descriptors to pass on.
        program: preloaded program, if any.

    Returns:
        Its process id, and the reason if it could not be executed.
    """
    read_end, write_end = os.pipe()
    parent, niceness = os.getpid(), os.getpriority(os.PRIO_PROCESS, 0)
    pid = os.fork()
    if pid == 0:
        errors = above(write_end, [2, *spec["fds"]])
        try:
            os.setpriority(os.PRIO_PROCESS, 0, max(0, niceness))  # which run_first() has reset, too
            become_program(spec, streams, passed, parent, program)
        except OSError as error:
            os.write(errors, str(error).encode())
        finally:
            os._exit(127)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        problem = pipe.read().decode()
    return pid, problem or None


def outgrown(folder: str, most_bytes: int, most_entries: int) -> bool:
    """Return whether a folder exceeds its limits, looking at no more entries than it may have."""
    waiting, entries, size_bytes = [folder], 0, 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    if (entries := entries + 1) > most_entries:
                        return True
                    size_bytes += entry.stat(follow_symlinks=False).st_size
                    waiting += [entry.path] if entry.is_dir(follow_symlinks=False) else []
        except FileNotFoundError:
            continue
        except OSError:
            return True  # its path is too long, or it is closed to its owner
    return size_bytes > most_bytes


def over_quota(spec: dict[str, Any]) -> bool:
    """Return whether the working folder exceeds its limits, if it has any."""
    return bool(spec["folder_bytes"]) and outgrown(spec["cwd"], spec["folder_bytes"], spec["folder_entries"])


def watch(pid: int, control: socket.socket, spec: dict[str, Any], deadline_s: float) -> str | None:
    """Wait until the program ends or must be stopped.

    Args:
        pid: process id of the program.
        control: connection to the caller, whose end stops the program.
        spec: the supervisor's instructions, with the limits.
        deadline_s: monotonic time at which the program is stopped.

    Returns:
        ``None`` if it ended, else the limit that it exceeded.
    """
    pidfd = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    poller.register(control, select.POLLIN)
    while True:
        remaining_s = deadline_s - time.monotonic()
        if remaining_s <= 0:
            return "wall"
        ready = {fd for fd, _ in poller.poll(1000 * min(WATCH_INTERVAL_S, remaining_s))}
        if pidfd in ready:
            return None
        if ready:
            return "abandoned"
        if count_tasks(descendants_of(os.getpid())) > spec["processes"]:
            return "processes"
        if over_quota(spec):
            return "folder"


# The kernel enforces CPU limits by counting ticks, each attributed entirely to the running process. On a busy
# machine that is a sample of the CPU time reported afterwards, with the standard deviation of a binomial
# distribution, at most sqrt(limit * tick).
_TICK_S = 0.01  # the longest that Linux is built with (CONFIG_HZ=100)
_DEVIATIONS = 4


def least_cpu_s_at_limit(limit_s: int) -> float:
    """Return the CPU seconds that a process which the kernel ended at its limit has had at least."""
    return limit_s - _DEVIATIONS * math.sqrt(limit_s * _TICK_S)


def limit_of_end(code: int, cpu_seconds: float, spec: dict[str, Any]) -> str | None:
    """Return which limit the kernel enforced on a program that ended with ``code``, if any.

    A compiler driver hides the SIGXCPU of the compiler proper, and a program may ignore SIGXCPU until
    SIGKILL comes: so a failure after that much CPU time counts as one of it.
    """
    if code == -signal.SIGXFSZ:
        return "file"
    if code == -signal.SIGXCPU or (code != 0 and cpu_seconds >= least_cpu_s_at_limit(cpu_limit_s(spec))):
        return "cpu"
    return None


def supervise(control: socket.socket, streams: list[int], passed: list[int], program: Program | None) -> None:
    """Run the program that the caller describes on ``control`` and report how it ended.

    Args:
        control: connection to the caller.
        streams: descriptors of standard output and standard error.
        passed: descriptors to pass on.
        program: preloaded program, if any.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    run_first()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    control.sendall(f"{os.getpid()}\n".encode())
    with control.makefile("rb") as stream:
        line = stream.readline()
    if not line:
        return
    spec: dict[str, Any] = json.loads(line)
    started = time.monotonic()
    pid, problem = start_program(spec, streams, passed, program)
    for fd in (*streams, *passed):
        os.close(fd)
    exceeded = watch(pid, control, spec, started + spec["wall_s"])
    seconds = time.monotonic() - started
    statuses: dict[int, int] = {}
    gone = kill_and_reap(pid, statuses)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = os.waitstatus_to_exitcode(statuses[pid]) if pid in statuses else -signal.SIGKILL
    if "wrapper" in spec and code > SIGNAL_EXIT:
        code = SIGNAL_EXIT - code
    if exceeded is None and over_quota(spec):
        exceeded, code = "folder", -signal.SIGKILL
    cpu_seconds = usage.ru_utime + usage.ru_stime
    report = {
        "returncode": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
        "exceeded": exceeded or limit_of_end(code, cpu_seconds, spec),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_memory_bytes": usage.ru_maxrss * 1024,
        "problem": problem if gone else "processes of the program could not be killed",
    }
    try:
        control.sendall(json.dumps(report).encode() + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        return  # the caller is gone; its program is too


def supervisor_main(fds: list[int], program: Program | None) -> NoReturn:
    """Run as the supervisor of one run; ``fds`` are control, stdout, stderr and those to pass on."""
    status = 1
    try:
        control = socket.socket(fileno=fds[0])
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        supervise(control, fds[1:3], fds[3:], program)
        status = 0
    finally:
        os._exit(status)


def receive_fds(listener: socket.socket) -> list[int]:
    """Return the descriptors of the next run, none of them inheritable; empty at the end."""
    _, received, _, _ = socket.recv_fds(listener, 1, MAX_PASSED_FDS)
    for fd in received:
        os.set_inheritable(fd, False)
    return received


def reap_supervisors(supervisors: set[int]) -> None:
    """Reap ended supervisors, and kill the orphans of killed ones."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            break
        supervisors.discard(pid)
    kill_trees([pid for pid in children_of(os.getpid()) if pid not in supervisors])


def fork_supervisor(listener: socket.socket, fds: list[int], program: Program | None) -> int:
    """Fork the supervisor of one run, give it ``fds`` and return its pid."""
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        supervisor_main(fds, program)
    for fd in fds:
        os.close(fd)
    return pid


def serve(listener: socket.socket, program: Program | None) -> None:
    """Fork one supervisor per message on ``listener`` until its peer closes it."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    supervisors: set[int] = set()
    poller = select.poll()
    poller.register(listener, select.POLLIN)
    poller.register(wake_read, select.POLLIN)
    open_for_work = True
    while open_for_work or supervisors:
        ready = {fd for fd, _ in poller.poll()}
        if wake_read in ready:
            os.read(wake_read, 4096)
            reap_supervisors(supervisors)
        if listener.fileno() in ready:
            fds = receive_fds(listener)
            if fds:
                supervisors.add(fork_supervisor(listener, fds, program))
            else:
                open_for_work = False
                poller.unregister(listener)


def main(program: Program | None = None) -> None:
    """Serve the socket whose descriptor is the first argument."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the owner's exit ends this process, nothing else does
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would copy, in each process that is forked, the pages of all objects
    serve(socket.socket(fileno=int(sys.argv[1])), program)


if __name__ == "__main__":
    main()
