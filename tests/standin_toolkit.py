"""A stand-in for the CANN toolkit: its programs, files and interfaces, with the simulator as the device."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).with_name("cann_standin")
ROOT = Path(__file__).resolve().parents[1]
CONFINED = {"cmake": "cmake.py", "msopgen": "msopgen.py", "bisheng": "bisheng.py"}  # standard library only
OPEN = {"msprof": "msprof.py", "npu-smi": "npu_smi.py"}


@dataclass(frozen=True)
class Standin:
    """An installed stand-in.

    Attributes:
        toolkit: folder for ``CannSettings.toolkit``.
        state: folder with the state of the devices: ``health``, ``clock_mhz``, ``user``
            (a process of somebody else), ``broken``.
    """

    toolkit: Path
    state: Path

    def reset(self) -> None:
        """Make all devices well."""
        for path in self.state.iterdir():
            path.unlink()


def install(
    folder: Path, simulator_cache: Path, version: str = "9.1.0", *, old_layout: bool = False
) -> Standin:
    """Install the stand-in below ``folder``, laid out as the toolkit is today or as it was up to 8.2."""
    toolkit = folder / "ascend-toolkit" / "latest" if old_layout else folder / "cann"
    state = folder / "state"
    for part in ("bin", "include/acl", "include/aclnn", "lib64", "opp"):
        (toolkit / part).mkdir(parents=True)
    state.mkdir()
    (toolkit / "template").write_text("add_ops" if old_layout else "npu_op")
    if old_layout:
        about = f"package_name=Ascend-cann-toolkit\nversion={version}\n"
        (toolkit / "ascend_toolkit_install.info").write_text(about)
    else:
        scripts = toolkit / "compiler" / "tikcpp" / "ascendc_kernel_cmake" / "fwk_modules" / "util"
        scripts.mkdir(parents=True)
        read = '"--tiling_key" in opts or "--input-param-file" in opts\n'
        (scripts / "ascendc_gen_options.py").write_text(read)
        (toolkit / "compiler" / "version.info").write_text(f"Version={version}\n")
    (toolkit / "include" / "acl" / "acl.h").write_text((SOURCES / "acl.h").read_text())
    (toolkit / "include" / "aclnn" / "acl_meta.h").write_text((SOURCES / "acl_meta.h").read_text())
    _libraries(toolkit)
    plain = Path(sys.executable).resolve()
    for name, source in CONFINED.items():
        _program(toolkit / "bin" / name, f"{plain} -I", SOURCES / source)
    for name, source in OPEN.items():
        _program(toolkit / "bin" / name, f"{sys.executable}", SOURCES / source)
    variables = {
        "ASCEND_HOME_PATH": str(toolkit),
        "PATH": f"{toolkit / 'bin'}:{plain.parent}:$PATH",
        "LD_LIBRARY_PATH": f"{toolkit / 'lib64'}",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
        "ASCEND_STANDIN_STATE": str(state),
        "ASCEND_STANDIN_PYTHON": sys.executable,
        "ASCEND_STANDIN_DEVICE": str(SOURCES / "device.py"),
        "ASCEND_STANDIN_SIMULATOR": str(simulator_cache),
    }
    lines = [f'export {name}="{value}"\n' for name, value in variables.items()]
    (toolkit.parent if old_layout else toolkit).joinpath("set_env.sh").write_text("".join(lines))
    return Standin(toolkit, state)


def _libraries(toolkit: Path) -> None:
    library = toolkit / "lib64" / "libascendcl.so"
    library.write_bytes(_runtime())
    library.chmod(0o755)
    (toolkit / "lib64" / "libnnopbase.so").symlink_to(library)


@cache
def _runtime() -> bytes:
    """Return the compiled runtime library, made once per process."""
    with tempfile.TemporaryDirectory() as folder:
        for header, place in (("acl.h", "acl"), ("acl_meta.h", "aclnn")):
            (Path(folder) / place).mkdir()
            (Path(folder) / place / header).symlink_to(SOURCES / header)
        library = Path(folder) / "libascendcl.so"
        command = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{folder}", str(SOURCES / "runtime.cpp")]
        subprocess.run([*command, "-o", str(library)], check=True)
        return library.read_bytes()


def _program(path: Path, interpreter: str, source: Path) -> None:
    path.write_text(f"#!{interpreter}\n{source.read_text()}")
    path.chmod(0o755)
