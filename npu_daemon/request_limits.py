"""Limits of what requests may ask for."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import MeasureProtocol

_GIB = 2**30


class RequestLimits(BaseModel):
    """Maximum values in the protocol of a request.

    Attributes:
        max_timeout_s: limit in seconds, for a build and for a run.
        max_memory_gib: limit in GiB, for the memory of a candidate's process and for the bytes it may write.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_timeout_s: float = Field(default=600.0, gt=0)
    max_memory_gib: float = Field(default=16.0, gt=0)

    def check(self, protocol: MeasureProtocol) -> None:
        """Check the limits of a request's protocol.

        Raises:
            MisuseError: it exceeds a limit.
        """
        memory_bytes = int(self.max_memory_gib * _GIB)
        for name, limit in (
            ("build_timeout_s", self.max_timeout_s),
            ("run_timeout_s", self.max_timeout_s),
            ("memory_limit_bytes", memory_bytes),
            ("output_limit_bytes", memory_bytes),
        ):
            asked = getattr(protocol, name)
            if asked > limit:
                raise MisuseError(
                    f"the request asks for {name} {asked:g}, this daemon gives at most {limit:g}: ask for "
                    "less, or have its owner set max_timeout_s and max_memory_gib in section [limits]"
                )
