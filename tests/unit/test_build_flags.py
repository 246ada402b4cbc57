"""Compiler flags of candidates: macros and levels of optimisation, and nothing else."""

from __future__ import annotations

import pytest

from ascend_gym.core.status import Status
from npu_daemon.simulator.build_flags import refused_flags


def test_macros_and_levels_are_accepted() -> None:
    assert refused_flags(["-O2", "-DTILE_OF_MINE", "-DROWS_AT_ONCE=4", "-DX=1.5f"]) is None


@pytest.mark.parametrize(
    "flag",
    [
        "-fwhole",
        "-I/etc",
        "-include",
        "x.h",
        "-DX=(1)",
        "-DX=a b",
        "-Ofast",
        "-O2 -g",
        "@file",
        "-DX=nodebug",
        "",
    ],
)
def test_other_flags_are_refused(flag: str) -> None:
    refused = refused_flags(["-O2", flag])
    assert refused is not None
    assert refused.status is Status.GUARD_REJECTED
    assert repr(flag) in refused.diagnostics[0].message
