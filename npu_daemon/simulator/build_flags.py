"""Compiler flags that candidates may have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase
from ascend_gym.core.status import Status

_FLAG = re.compile(r"-D\w+(?:=[\w.]*)?|-O[0-3]")


def refused_flags(flags: Sequence[str]) -> Failure | None:
    """Return why the candidate's own compiler flags are not used, or ``None``."""
    unknown = [flag for flag in flags if _FLAG.fullmatch(flag) is None]
    if not unknown:
        return None
    message = f"expected build flags of the forms -DNAME, -DNAME=VALUE or -O0 to -O3, got {unknown}"
    return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),))
