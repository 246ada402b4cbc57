"""The seccomp(2) filter with the system calls that are refused to untrusted programs.

Everything else is allowed: Landlock or mounts control access to files, and resource limits control
consumption. The filter refuses what neither covers: networks, other processes (including their
limits, priorities and processors), namespaces, memory shared by name, attributes of files, and kernel
interfaces that no computation needs. Four calls are refused depending on their arguments: ``clone`` for a
process or a namespace, ``fcntl`` for choosing who gets a file's signals, ``prlimit64`` for setting limits
(a compiler may set its own), ``tgkill`` for other processes.
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import cache

Instruction = tuple[int, int, int, int | None]
"""Code, jump if true, jump if false and operand of ``struct sock_filter``; ``None``: the program's own id."""

# Numbers from the kernel's tables (asm/unistd_64.h and asm-generic/unistd.h); "-": there is no such call.
_REFUSED = """
    socket 41 198            socketpair 53 199
    ptrace 101 117           process_vm_readv 310 270  process_vm_writev 311 271
    kcmp 312 272             pidfd_open 434 434        pidfd_getfd 438 438
    tkill 200 130            rt_sigqueueinfo 129 138   rt_tgsigqueueinfo 297 240
    pidfd_send_signal 424 424                          setpriority 141 140
    sched_setaffinity 203 122                          sched_setscheduler 144 119
    sched_setparam 142 118   sched_setattr 314 274     ioprio_set 251 30
    migrate_pages 256 238    move_pages 279 239
    shmget 29 194            shmat 30 196              shmctl 31 195
    semget 64 190            semctl 66 191             semop 65 193
    semtimedop 220 192       msgget 68 186             msgctl 71 187
    msgsnd 69 189            msgrcv 70 188             mq_open 240 180
    mq_unlink 241 181
    unshare 272 97           setns 308 268             chroot 161 51
    pivot_root 155 41        mount 165 40              umount2 166 39
    open_tree 428 428        move_mount 429 429        fsopen 430 430
    fsconfig 431 431         fsmount 432 432           fspick 433 433
    mount_setattr 442 442
    add_key 248 217          request_key 249 218       keyctl 250 219
    bpf 321 280              perf_event_open 298 241   userfaultfd 323 282
    io_uring_setup 425 425   io_uring_enter 426 426    io_uring_register 427 427
    fanotify_init 300 262    name_to_handle_at 303 264 open_by_handle_at 304 265
    init_module 175 105      delete_module 176 106     finit_module 313 273
    kexec_load 246 104       kexec_file_load 320 294   acct 163 89
    quotactl 179 60          reboot 169 142            personality 135 92
    swapon 167 224           swapoff 168 225           syslog 103 116
    settimeofday 164 170     clock_settime 227 112     iopl 172 -
    sethostname 170 161      setdomainname 171 162     ioperm 173 -
"""
# A compiler starts programs and makes its output executable; a candidate does neither, and needs no files
# in memory.
_REFUSED_TO_LEAVES = """
    fork 57 -                vfork 58 -                kill 62 129
    setrlimit 160 164        execveat 322 281          memfd_create 319 279
    memfd_secret 447 447
    chmod 90 -               fchmod 91 52              fchmodat 268 53
    fchmodat2 452 452        chown 92 -                fchown 93 55
    lchown 94 -              fchownat 260 54           truncate 76 45
    setxattr 188 5           lsetxattr 189 6           fsetxattr 190 7
    removexattr 197 14       lremovexattr 198 15       fremovexattr 199 16
    utime 132 -              utimes 235 -              futimesat 261 -
    utimensat 280 88
"""
_COLUMNS = {"x86_64": 1, "aarch64": 2}
_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_FCNTL = {"x86_64": 72, "aarch64": 25}
_PRLIMIT64 = {"x86_64": 302, "aarch64": 261}
_KILL = {"x86_64": 62, "aarch64": 129}
_TGKILL = {"x86_64": 234, "aarch64": 131}
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW* of clone(2), apart from the time namespace, which shares a bit
_THREAD = 0x00010000  # CLONE_THREAD

_SET_OWNER, _SET_OWNER_EX = 8, 15  # F_SETOWN, F_SETOWN_EX of fcntl(2)

# struct seccomp_data: number, architecture, instruction pointer, six arguments of 64 bits, low half first.
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT, _HALF_BYTES = 0, 4, 16, 4
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_SOCK_FILTER, _OPERAND_AT = struct.Struct("=HBBI"), 4
# linux/seccomp.h: SECCOMP_RET_*; the low half of RET_ERRNO is the error number.
_RET_ALLOW, _RET_ERRNO, _RET_KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_ALLOW: Instruction = (_RETURN, 0, 0, _RET_ALLOW)
_REFUSE: Instruction = (_RETURN, 0, 0, _RET_ERRNO | errno.EPERM)


def architecture_is_known() -> bool:
    """Whether the system call numbers of this machine are known here."""
    return platform.machine() in _COLUMNS


def refused_calls(machine: str, *, starts_programs: bool) -> dict[str, int]:
    """Return name and number of every call that is refused on ``machine`` (``x86_64`` or ``aarch64``)."""
    fields = (_REFUSED if starts_programs else _REFUSED + _REFUSED_TO_LEAVES).split()
    rows = [fields[at : at + 3] for at in range(0, len(fields), 3)]
    column = _COLUMNS[machine]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def filter_program(
    *, starts_programs: bool, signals_others: bool, machine: str | None = None
) -> list[Instruction]:
    """Return the filter's instructions.

    Args:
        starts_programs: whether it may start other processes and programs.
        signals_others: whether ``kill`` and ``tgkill`` may name other processes, which is safe in a namespace
            with only those that it started.
        machine: as in ``platform.machine``; by default this one.
    """
    machine = machine or platform.machine()
    steps: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[machine]),
        (_RETURN, 0, 0, _RET_KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _X32_BIT), _REFUSE]
    for number in sorted(refused_calls(machine, starts_programs=starts_programs).values()):
        steps += _calls(number, _REFUSE)
    # The C library falls back to clone, whose flags the filter can check.
    steps += _calls(_CLONE3, (_RETURN, 0, 0, _RET_ERRNO | errno.ENOSYS))
    flags = (_ANY_BIT, 0, 1, _NEW_NAMESPACES) if starts_programs else (_ANY_BIT, 1, 0, _THREAD)
    steps += _calls(_CLONE[machine], _argument(0), flags, _REFUSE, _ALLOW)
    owner = ((_EQUAL, 1, 0, _SET_OWNER), (_EQUAL, 0, 1, _SET_OWNER_EX))
    steps += _calls(_FCNTL[machine], _argument(1), *owner, _REFUSE, _ALLOW)
    pid, new_limit = 0, 2
    steps += _calls(_PRLIMIT64[machine], *_only(pid if starts_programs else new_limit, 0))
    if not signals_others:
        steps += _calls(_KILL[machine], _REFUSE)
        steps += _calls(_TGKILL[machine], *_only(0, None))
    return [*steps, _ALLOW]


@cache
def packed_filter(*, starts_programs: bool, signals_others: bool) -> tuple[str, tuple[int, ...]]:
    """Return the filter of this machine as an array of ``struct sock_filter``.

    Args:
        starts_programs: see ``filter_program``.
        signals_others: likewise.

    Returns:
        Its bytes in hexadecimal digits, and the offsets in bytes at which the program's own id belongs.
    """
    steps = filter_program(starts_programs=starts_programs, signals_others=signals_others)
    packed = b"".join(_SOCK_FILTER.pack(*step[:3], step[3] or 0) for step in steps)
    own_id = [number for number, step in enumerate(steps) if step[3] is None]
    return packed.hex(), tuple(number * _SOCK_FILTER.size + _OPERAND_AT for number in own_id)


def _calls(number: int, *answer: Instruction) -> list[Instruction]:
    """Return the instructions for one call number; the last one returns, other calls skip them."""
    return [(_EQUAL, 0, len(answer), number), *answer]


def _only(argument: int, value: int | None) -> tuple[Instruction, ...]:
    """Return the instructions that allow a call with one value below 2^32 in one of its arguments."""
    low_half = (_argument(argument), (_EQUAL, 0, 3, value))
    return (*low_half, _argument(argument, _HALF_BYTES), (_EQUAL, 0, 1, 0), _ALLOW, _REFUSE)


def _argument(number: int, offset_bytes: int = 0) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 2 * _HALF_BYTES * number + offset_bytes)
