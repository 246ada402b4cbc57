"""Compiles the simulator into a wheel, so that its first use takes a few seconds instead of half a minute.

Hatchling loads this file (``pyproject.toml``) where that is asked for:
``HATCH_BUILD_HOOK_ENABLE_CUSTOM=true python -m build --wheel``. Where the objects do not fit, for another
processor or other sources, the simulator is built at first use as it is without them.
"""

from __future__ import annotations

import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledParts(BuildHookInterface):
    """Adds compiled objects of the simulator to a wheel; an editable installation gets none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say which platform the wheel is for."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from npu_daemon.simulator.object_store import SHIPPED
        from npu_daemon.simulator.toolchain import compile_for_wheel

        self._folder = tempfile.TemporaryDirectory()
        compile_for_wheel(Path(self._folder.name))
        place = SHIPPED.relative_to(self.root).as_posix()
        build_data["force_include"][self._folder.name] = place
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled."""
        if version != "editable":
            self._folder.cleanup()
