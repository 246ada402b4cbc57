"""Execution of untrusted programs with limits and confinement, and complete cleanup afterwards."""

from npu_daemon.sandbox.confinement import CONFINING, RLIMITS, Reach, sandbox_level
from npu_daemon.sandbox.limited_run import (
    ExceededLimit,
    ProcessOutcome,
    ResourceLimits,
    run_limited,
    start_loading,
    wall_limit_s,
)
from npu_daemon.sandbox.memory_file import MemoryFile
from npu_daemon.sandbox.preload import Preload, python_files

__all__ = [
    "CONFINING",
    "RLIMITS",
    "ExceededLimit",
    "MemoryFile",
    "Preload",
    "ProcessOutcome",
    "Reach",
    "ResourceLimits",
    "python_files",
    "run_limited",
    "sandbox_level",
    "start_loading",
    "wall_limit_s",
]
