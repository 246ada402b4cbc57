"""The system calls that an untrusted program is refused, as a filter program for seccomp(2).

Everything else is allowed: what a program may do to files is decided by Landlock or by mounts, and how much
it may use by resource limits. Refused is what neither of them covers: networks, other processes, namespaces,
memory shared by name, attributes of files, and kernel interfaces that no computation needs.
"""

from __future__ import annotations

import errno
import platform
import struct

# Numbers from the kernel's tables (asm/unistd_64.h and asm-generic/unistd.h); "-": there is no such call.
_REFUSED = """
    socket 41 198            socketpair 53 199
    ptrace 101 117           process_vm_readv 310 270  process_vm_writev 311 271
    kcmp 312 272             pidfd_open 434 434        pidfd_getfd 438 438
    shmget 29 194            shmat 30 196              semget 64 190
    msgget 68 186            mq_open 240 180
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
# A compiler starts programs and makes its output executable; a candidate does neither.
_REFUSED_TO_LEAVES = """
    fork 57 -                vfork 58 -                kill 62 129
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
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW* of clone(2), apart from the time namespace, which shares a bit
_THREAD = 0x00010000  # CLONE_THREAD

# struct seccomp_data: number, architecture, instruction pointer, arguments of 64 bits.
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000


def architecture_is_known() -> bool:
    """Whether the numbers of this machine's system calls are known here."""
    return platform.machine() in _COLUMNS


def refused_calls(machine: str, *, starts_programs: bool) -> dict[str, int]:
    """Return name and number of every call that is refused on ``machine`` (``x86_64`` or ``aarch64``)."""
    fields = (_REFUSED if starts_programs else _REFUSED + _REFUSED_TO_LEAVES).split()
    rows = [fields[at : at + 3] for at in range(0, len(fields), 3)]
    column = _COLUMNS[machine]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def filter_program(*, starts_programs: bool, machine: str | None = None) -> bytes:
    """Return the filter as an array of ``struct sock_filter``.

    Args:
        starts_programs: whether other processes and programs may be started.
        machine: as ``platform.machine`` names it; by default this one.
    """
    machine = machine or platform.machine()
    refuse = [(_RETURN, 0, 0, 0x00050000 | errno.EPERM)]
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _X32_BIT), *refuse]
    for number in sorted(refused_calls(machine, starts_programs=starts_programs).values()):
        steps += [(_EQUAL, 0, 1, number), *refuse]
    # The C library falls back to clone, whose flags can be seen from here.
    steps += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)]
    steps += [(_EQUAL, 0, 4, _CLONE[machine]), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)]
    if starts_programs:
        steps += [(_ANY_BIT, 0, 1, _NEW_NAMESPACES), *refuse, (_RETURN, 0, 0, _ALLOW)]
    else:
        steps += [(_ANY_BIT, 1, 0, _THREAD), *refuse, (_RETURN, 0, 0, _ALLOW)]
    steps += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
