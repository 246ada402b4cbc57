"""Calls of Ascend C, as ``calls.toml`` tells of them; the head of that file explains the fields."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import as_file, files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ascend_gym.core.toml_file import read_toml

Form = Literal["unary", "binary", "with_scalar"]

_SCRATCH_PARAMETER = "sharedTmpBuffer"


class KnownCall(BaseModel):
    """A call of Ascend C, or several that differ in their names alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    header: str
    topics: tuple[str, ...]
    forms: tuple[str, ...]
    example: str
    notes: str = ""
    types: tuple[str, ...] = ()
    form: Form | None = None
    dst: str = ""
    declared: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The single calls that the entry is about."""
        return tuple(self.name.split(", "))

    @property
    def needs_scratch(self) -> bool:
        """Whether some form of the call takes scratch memory."""
        return any(_SCRATCH_PARAMETER in form for form in self.forms)

    @property
    def reads_dst(self) -> bool:
        """Whether the result depends on what the destination held before."""
        return re.search(r"\bdst\b", self.dst) is not None

    @property
    def about(self) -> str:
        """What the call computes, and what else is to be known of it."""
        return " ".join(filter(None, (f"dst = {self.dst}." if self.dst else "", self.notes)))


@cache
def known_calls() -> tuple[KnownCall, ...]:
    """Return the table of calls."""
    with as_file(files(__package__) / "calls.toml") as path:
        return tuple(KnownCall.model_validate(entry) for entry in read_toml(path)["call"])


def elementwise_calls(form: Form | None = None) -> frozenset[str]:
    """Return the names of the element-wise calls: all of them, or those of a form."""
    return frozenset(
        name
        for call in known_calls()
        if call.form is not None and form in (None, call.form)
        for name in call.names
    )
