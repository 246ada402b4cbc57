"""What to do when a process has no file descriptors left."""

from __future__ import annotations

import errno
import os
import resource

_REASON = os.strerror(errno.EMFILE)


def limit_hint(message: str) -> str:
    """Return what to do about a message that says that too many files are open; nothing for any other."""
    if _REASON not in message:
        return ""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"; this process may have {limit} files open: raise that with 'ulimit -n' (up to {most}), "
        "or close environments and evaluators that are not used"
    )
