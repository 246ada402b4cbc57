"""The simulator is built and works where no compiler or linker of the system can be found.

It is built here only if that has not happened yet, as in ``.ci/run``, which runs this test first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAMS = ("git", "sh", "env", "cat", "ls", "mkdir", "rm", "cp")
COMPILERS = (
    "g++",
    "gcc",
    "c++",
    "cc",
    "clang",
    "clang++",
    "ld",
    "as",
    "ar",
    "nm",
    "c++filt",
    "addr2line",
    "zig",
)
EVALUATION = """
import shutil, sys
from pathlib import Path
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.pipeline import evaluate

assert not [name for name in sys.argv[2:] if shutil.which(name)]
cache = Path(sys.argv[1])
spec = load_operator("core/add")
request = request_for(spec, spec.baseline, MeasureProtocol(), ("fp16_1777x1003",))
data = CaseDataCache(cache / "data", "test")
result = evaluate(request, spec, SimulatorBackend(cache), oracle_for(spec), data)
print(result.status.value, [each.message for each in result.diagnostics])
"""


def test_an_evaluation_needs_no_compiler_of_the_system(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    toolchains = request.config.cache.mkdir("simulator") / "toolchain"
    toolchains.mkdir(exist_ok=True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "toolchain").symlink_to(toolchains)  # nothing else that was built is at hand
    search_path = tmp_path / "bin"
    search_path.mkdir()
    for name in PROGRAMS:
        (search_path / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    environment = {"PATH": str(search_path), "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", EVALUATION, str(tmp_path / "cache"), *COMPILERS],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ok []", done.stdout
    assert not (tmp_path / ".cache").exists()
