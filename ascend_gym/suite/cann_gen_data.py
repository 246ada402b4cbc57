"""Runs the gen_data.py of a cann-ops example, which writes its inputs and golden outputs.

The script is code of the operator's author, like ``reference.py``. It runs in a process of its own, with
numpy, random and torch seeded; where torch is missing, an empty module of that name lets scripts pass that
import without using it. Scripts that ask ``npu-smi`` for the chip are told 910B2.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from ascend_gym.core.errors import OperatorFormatError

GEN_DATA_TIMEOUT_S = 120.0

_RUNNER = """
import random, runpy, sys
import numpy
seed = int(sys.argv[1])
random.seed(seed)
numpy.random.seed(seed)
if sys.argv[2] == "torch":
    import torch
    torch.manual_seed(seed)
sys.argv = ["gen_data.py", *sys.argv[3:]]
runpy.run_path("gen_data.py", run_name="__main__")
"""

_EMPTY_TORCH = """
def __getattr__(name):
    raise AttributeError(f"torch is not installed, and gen_data.py uses torch.{name}")
"""

# what ``npu-smi info -m`` prints for one chip: some scripts choose their golden output by the chip's name
_CHIP_LIST = """#!/bin/sh
echo "NPU ID  Chip ID  Chip Logic ID  Chip Name"
echo "0       0        0              Ascend 910B2"
"""

_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(\w+)", re.MULTILINE)
_CALL = re.compile(r"python3? gen_data\.py([^\n`;&|$]*)$", re.MULTILINE)
_MISSING_MODULE = re.compile(r"No module named '(\w+)")
_USES_TORCH = "torch is not installed"


def missing_modules(example: Path) -> list[str]:
    """Return the modules that the gen_data.py in ``example`` needs and this Python does not have."""
    text = (example / "gen_data.py").read_text(encoding="utf-8", errors="replace")
    used = [name for name in _IMPORT.findall(text) if name != "torch" or "torch." in text]
    return [name for name in dict.fromkeys(used) if importlib.util.find_spec(name) is None]


def run_gen_data(work: Path, seed: int) -> None:
    """Run ``work/gen_data.py`` in ``work``, which is a copy of the example folder.

    Raises:
        OperatorFormatError: it fails; the message says what it needs.
    """
    for name in ("input", "output"):
        (work / name).mkdir(exist_ok=True)
    python_path = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    uses_torch = "torch" in (work / "gen_data.py").read_text(encoding="utf-8", errors="replace")
    has_torch = importlib.util.find_spec("torch") is not None
    stubs = _stubs(work.parent / "stubs", with_torch=not has_torch)
    python_path += [] if has_torch else [str(stubs)]
    module = "torch" if uses_torch and has_torch else ""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _RUNNER, str(seed % 2**32), module, *_arguments(work)],
            cwd=work,
            env={"PATH": f"{stubs}:{os.defpath}", "PYTHONPATH": os.pathsep.join(python_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GEN_DATA_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OperatorFormatError(f"gen_data.py did not finish within {GEN_DATA_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise OperatorFormatError(_complaint(said, done.returncode))


def _stubs(folder: Path, *, with_torch: bool) -> Path:
    """Fill a folder with what scripts look for and this machine does not have."""
    folder.mkdir()
    (folder / "npu-smi").write_text(_CHIP_LIST, encoding="utf-8")
    (folder / "npu-smi").chmod(0o755)
    if with_torch:
        (folder / "torch.py").write_text(_EMPTY_TORCH, encoding="utf-8")
    return folder


def _arguments(work: Path) -> list[str]:
    """Return the arguments that run.sh gives gen_data.py."""
    script = work / "run.sh"
    text = script.read_text(encoding="utf-8", errors="replace") if script.is_file() else ""
    call = _CALL.search(text)
    return shlex.split(call.group(1)) if call else []


def _complaint(said: str, returncode: int) -> str:
    missing = _MISSING_MODULE.search(said)
    module = "torch" if _USES_TORCH in said else missing.group(1) if missing else None
    if module is not None:
        return f"its gen_data.py needs {module} (pip install {module})"
    lines = said.splitlines()
    return f"gen_data.py failed: {lines[-1] if lines else f'exit {returncode}'}"
