"""The one kernel that a case launches, and how the vendor's build is told to compile no other.

An operator's definition lists columns of element types, and its kernel has tiling keys. The build compiles
every key of every column, although a case launches one kernel. The simulator, which checks sources before
any device, knows the column of a case and runs the tiling program that chooses the key. Two options of the
kernel's build name them (asc-devkit 9.1.0):

- ``--tiling_key=KEY``, described by the guide's page on faster compilation;
- ``--input-param-file=FILE``, which its pages do not mention. ``ascendc_gen_options.py`` and
  ``ascendc_bin_param_build.py`` read it in place of the columns of the definition. The format is that of the
  files ``*_binary.json`` of ops-math.

Builds of older toolkits may lack either, so their script is asked which it reads. What the device's tiling
program really chooses is known only after it ran there: whoever finds nothing launched compiles everything.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ascend_gym.core.digest import digest_of
from ascend_gym.core.records import Case
from npu_daemon.simulator.host_schema import (
    DefinitionError,
    HostParameter,
    OperatorDefinition,
    Slot,
    match_column,
)

TILING_KEY, PARAMETERS = "--tiling_key", "--input-param-file"
PARAMETERS_NAME = "binary.json"
_SCRIPT = "ascendc_gen_options.py"
_SCRIPT_FOLDERS = ("compiler/tikcpp/ascendc_kernel_cmake/fwk_modules/util",)
_TYPE_NAMES = {"DT_FLOAT": "float32", "DT_BF16": "bfloat16"}  # others: the rest of the name in lower case
_UNKNOWN_SHAPE = -2  # of any rank
_DEFAULTS: dict[str, tuple[str, object]] = {
    "bool": ("bool", False),
    "int": ("int", 0),
    "float": ("float", 0.0),
    "string": ("str", ""),
    "list_bool": ("list_bool", []),
    "list_int": ("list_int", []),
    "list_float": ("list_float", []),
    "list_list_int": ("list_list_int", [[]]),
}


@dataclass(frozen=True)
class Instance:
    """A kernel of an operator: empty for all of them.

    Attributes:
        parameters: its column, as the text of a file for ``--input-param-file``; empty for all columns.
        tiling_key: ``None`` for all keys.
    """

    parameters: str = ""
    tiling_key: int | None = None

    def __bool__(self) -> bool:
        """Whether it leaves any kernel out."""
        return bool(self.parameters) or self.tiling_key is not None

    def within(self, options: Collection[str]) -> Instance:
        """Return it as far as these options of the build can say it."""
        return replace(
            self,
            parameters=self.parameters if PARAMETERS in options else "",
            tiling_key=self.tiling_key if TILING_KEY in options else None,
        )

    def words(self, folder: Path) -> list[str]:
        """Return the options of the build, after writing the file that one of them names into ``folder``."""
        words = [] if self.tiling_key is None else [f"{TILING_KEY}={self.tiling_key}"]
        if self.parameters:
            (folder / PARAMETERS_NAME).write_text(self.parameters, encoding="utf-8")
            words.append(f"{PARAMETERS}={folder / PARAMETERS_NAME}")
        return words


def instance_of(definition: OperatorDefinition, case: Case, tiling_key: int | None) -> Instance:
    """Return the kernel that a case launches; without a column where the definition has none for it.

    Args:
        definition: operator as its host code declares it.
        case: case.
        tiling_key: key that its tiling program chooses, if that is known.
    """
    try:
        column = match_column(definition, case)
    except DefinitionError:
        return Instance(tiling_key=tiling_key)
    node: dict[str, Any] = {
        "bin_filename": "",
        "inputs": _described(definition.inputs, column.inputs),
        "outputs": _described(definition.outputs, column.outputs),
    }
    if definition.attributes:
        node["attrs"] = [
            {"name": each.name, "dtype": _DEFAULTS[each.type][0], "value": _DEFAULTS[each.type][1]}
            for each in definition.attributes
        ]
    node["bin_filename"] = f"{definition.op_type}_{digest_of('binary', json.dumps(node))[:32]}"
    return Instance(json.dumps({"op_type": definition.op_type, "op_list": [node]}, indent=2), tiling_key)


def _described(parameters: Sequence[HostParameter], slots: Sequence[Slot]) -> list[object]:
    described: list[object] = []
    for index, (parameter, slot) in enumerate(zip(parameters, slots, strict=True)):
        one = {
            "name": parameter.name,
            "index": index,
            "dtype": _TYPE_NAMES.get(slot.type, slot.type.removeprefix("DT_").lower()),
            "format": slot.format,
            "paramType": parameter.kind,
            "shape": [_UNKNOWN_SHAPE],
            "format_match_mode": "FormatAgnostic",
        }
        described.append([one] if parameter.kind == "dynamic" else one)
    return described


def options_read(project: Path, toolkit: Path) -> frozenset[str]:
    """Return which of the two options the build of a project knows.

    Projects of older templates have the script that reads options among their own files, those of current
    ones use the toolkit's.

    Args:
        project: folder that msopgen generated.
        toolkit: folder of the CANN toolkit.
    """
    places = [*sorted(project.rglob(_SCRIPT)), *(toolkit / folder / _SCRIPT for folder in _SCRIPT_FOLDERS)]
    text = next((place.read_text("utf-8", "replace") for place in places if place.is_file()), "")
    return frozenset(option for option in (TILING_KEY, PARAMETERS) if option in text)
