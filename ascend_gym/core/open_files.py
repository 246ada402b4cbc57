"""Hint for processes that run out of file descriptors."""

from __future__ import annotations

import errno
import os
import resource

_REASON = os.strerror(errno.EMFILE)


def limit_hint(message: str) -> str:
    """Return advice if an error message says that too many files are open, else an empty string."""
    if _REASON not in message:
        return ""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"; this process may have {limit} files open: raise that with 'ulimit -n' (up to {most}), "
        "or close environments and evaluators that are not used"
    )
