"""Compiler flags of candidates: macros and levels of optimisation, and nothing else."""

from __future__ import annotations

import re

import pytest

from ascend_gym.core.records import SourceFile, Sources
from ascend_gym.core.status import Status
from npu_daemon.simulator.build_flags import refused_flags
from npu_daemon.simulator.kernel_build import Entry, wrapper_source


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


def test_no_flag_can_hold_the_name_of_the_call_of_the_entry() -> None:
    sources = Sources(files=(SourceFile(path="k.cpp", text="void k() {}"),), main="k.cpp")
    alone = wrapper_source(sources, Entry("k"))
    (call,) = re.findall(r"#define (asim_call_\w+) ", alone)
    flag = f"-D{call}="  # what could be computed from the sources
    assert refused_flags([flag]) is None
    wrapped = wrapper_source(sources, Entry("k"), [flag])
    (other,) = re.findall(r"#define (asim_call_\w+) extern", wrapped)
    assert other != call
    assert wrapped.rstrip().endswith(other)
