"""Compiler flags that candidates may have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Phase
from ascend_gym.core.status import Status

_FLAG = re.compile(r"-D\w+(?:=[\w.]*)?|-O[0-3]")
_REFUSED_WORD = "nodebug"  # whose text a call is in (kernel_ir/origins.py)


def refused_flags(flags: Sequence[str]) -> Failure | None:
    """Return why the candidate's own compiler flags are not used, or ``None``."""
    unknown = [flag for flag in flags if _FLAG.fullmatch(flag) is None or _REFUSED_WORD in flag]
    if not unknown:
        return None
    message = (
        f"expected build flags of the forms -DNAME, -DNAME=VALUE or -O0 to -O3, without {_REFUSED_WORD}, "
        f"got {unknown}"
    )
    return Failure.of(Status.GUARD_REJECTED, Phase.GUARD, message)
