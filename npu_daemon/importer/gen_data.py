"""Runs the gen_data.py of a cann-ops example, which writes its inputs and golden outputs.

The script is untrusted code like ``main.cpp`` and is confined like it, with numpy, random and
torch seeded. It runs once for each variant of the data, in a separate copy of the example, as a fork of one
interpreter that has loaded torch. Where torch is missing, an empty module of that name satisfies scripts that
import it without using it. Scripts that ask ``npu-smi`` for the chip get 910B2.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from pathlib import Path

from ascend_gym.core.errors import OperatorFormatError
from npu_daemon.importer.programs import python_folders, run_confined

GEN_DATA_TIMEOUT_S = 120.0

_RUNNER = """
import os, random, runpy, sys
import numpy
if sys.argv[1] == "torch":
    import torch

def size_bytes(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)

def generate(seed, arguments):
    os.chdir(str(seed))
    random.seed(seed)
    numpy.random.seed(seed)
    if sys.argv[1] == "torch":
        torch.manual_seed(seed)
    sys.argv = ["gen_data.py", *arguments]
    runpy.run_path("gen_data.py", run_name="__main__")

for seed in range(int(sys.argv[2])):
    if seed >= 2 and size_bytes("0") > int(sys.argv[3]):
        break
    child = os.fork()
    if child == 0:
        generate(seed, sys.argv[4:])
        sys.stdout.flush()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        sys.exit(code if code > 0 else 1)
    open(f"{seed}.done", "w").close()
"""

_EMPTY_TORCH = """
def __getattr__(name):
    raise AttributeError(f"torch is not installed, and gen_data.py uses torch.{name}")
"""

# Output of ``npu-smi info -m`` for one chip: some scripts choose their golden output by the chip's name.
_CHIP_LIST = """#!/bin/sh
echo "NPU ID  Chip ID  Chip Logic ID  Chip Name"
echo "0       0        0              Ascend 910B2"
"""

_LARGE_BYTES = 64 << 20  # of one variant: of larger ones there are two
_CALL = re.compile(r"python3? gen_data\.py([^\n`;&|$]*)$", re.MULTILINE)
_MISSING_MODULE = re.compile(r"No module named '(\w+)")
_USES_TORCH = "torch is not installed"


def run_gen_data(scratch: Path, variants: int) -> list[Path]:
    """Run the ``gen_data.py`` of each variant, a copy of the example folder below ``scratch``.

    Args:
        scratch: folder with the copies, named 0, 1, 2 and so on, which are also the seeds.
        variants: number of variants. If the data are large, only two are run.

    Returns:
        The copies that have data.

    Raises:
        OperatorFormatError: a script fails; the message says what it needs.
    """
    first = scratch / "0"
    for variant in range(variants):
        for name in ("input", "output"):
            (scratch / str(variant) / name).mkdir(exist_ok=True)
    uses_torch = "torch" in (first / "gen_data.py").read_text(encoding="utf-8", errors="replace")
    has_torch = importlib.util.find_spec("torch") is not None
    stubs = _stubs(scratch / "stubs", with_torch=not has_torch)
    python_path = [each for each in sys.path if each] + ([] if has_torch else [str(stubs)])
    module = "torch" if uses_torch and has_torch else ""
    limits = [str(variants), str(_LARGE_BYTES)]
    done = run_confined(
        [sys.executable, "-c", _RUNNER, module, *limits, *_arguments(first)],
        cwd=scratch,
        wall_s=GEN_DATA_TIMEOUT_S * variants,
        readable=python_folders(),
        programs=[stubs],
        env={"PATH": f"{stubs}:{os.defpath}", "PYTHONPATH": os.pathsep.join(python_path)},
    )
    if done.timed_out:
        raise OperatorFormatError(f"gen_data.py did not finish within {GEN_DATA_TIMEOUT_S * variants:g} s")
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise OperatorFormatError(_complaint(said, done.returncode))
    return [scratch / str(variant) for variant in range(variants) if (scratch / f"{variant}.done").is_file()]


def _stubs(folder: Path, *, with_torch: bool) -> Path:
    """Fill a folder with substitutes for what scripts expect and this machine lacks."""
    folder.mkdir()
    (folder / "npu-smi").write_text(_CHIP_LIST, encoding="utf-8")
    (folder / "npu-smi").chmod(0o755)
    if with_torch:
        (folder / "torch.py").write_text(_EMPTY_TORCH, encoding="utf-8")
    return folder


def _arguments(work: Path) -> list[str]:
    """Return the arguments with which run.sh calls gen_data.py."""
    script = work / "run.sh"
    text = script.read_text(encoding="utf-8", errors="replace") if script.is_file() else ""
    call = _CALL.search(text)
    return shlex.split(call.group(1)) if call else []


def _complaint(said: str, returncode: int | None) -> str:
    missing = _MISSING_MODULE.search(said)
    module = "torch" if _USES_TORCH in said else missing.group(1) if missing else None
    if module is not None:
        return f"its gen_data.py needs {module} (pip install {module})"
    lines = said.splitlines()
    return f"gen_data.py failed: {lines[-1] if lines else f'exit {returncode}'}"
