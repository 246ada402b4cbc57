"""Stands in for msopgen: makes a project laid out as its manual says, by the template of its toolkit."""

from __future__ import annotations

import json
import sys
from pathlib import Path

TEMPLATES = {
    "npu_op": "npu_op_kernel_sources(ascendc_kernels KERNEL_DIR ./)\nnpu_op_kernel_library(ascendc_kernels\n"
    "    SRC_BASE ${CMAKE_SOURCE_DIR}/op_kernel/\n    TILING_LIBRARY cust_optiling\n)\n",
    "add_ops": "add_kernels_compile()\n",
}


def main(arguments: list[str]) -> int:
    """Make the project of ``gen -i PROTOTYPE -c UNIT -lan cpp -out FOLDER``."""
    options = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    if arguments[0] != "gen" or not options["-c"].startswith("ai_core-"):
        sys.stderr.write("expected gen with -c ai_core-UNIT\n")
        return 1
    (prototype,) = json.loads(Path(options["-i"]).read_text())
    project = Path(options["-out"])
    for side in ("op_host", "op_kernel"):
        (project / side).mkdir(parents=True)
        (project / side / "draft.cpp").write_text("#error a draft\n")
        (project / side / "CMakeLists.txt").write_text("# host\n")
    template = (Path(__file__).parents[1] / "template").read_text()
    (project / "op_kernel" / "CMakeLists.txt").write_text(TEMPLATES.get(template, "add_library(kernels)\n"))
    if template == "add_ops":  # projects of older templates bring the build's scripts
        (project / "cmake" / "util").mkdir(parents=True)
        script = project / "cmake" / "util" / "ascendc_gen_options.py"
        script.write_text('if "--tiling_key" in opts: handle_tiling_key()\n')
    (project / "type").write_text(prototype["op"])
    variables = {"vendor_name": {"type": "STRING", "value": "customize"}}
    presets = {"version": 1, "configurePresets": [{"name": "default", "cacheVariables": variables}]}
    (project / "CMakePresets.json").write_text(json.dumps(presets))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
