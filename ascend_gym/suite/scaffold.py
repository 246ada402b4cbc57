"""Begins an operator of one's own as a copy of another one under a new name."""

from __future__ import annotations

import re
from pathlib import Path

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import OpSpec
from ascend_gym.suite.cann_cases import REFERENCE_NAME
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.manifest import MANIFEST_NAME

DEFAULT_MODEL = "silu"

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")


def begin_operator(name: str, parent: Path, model: OpSpec) -> Path:
    """Write a folder ``parent/name`` that holds ``model`` under another name, and return it.

    Args:
        name: in snake case; the type is the same in camel case.
        parent: where the folder goes.
        model: an operator whose sources are one file a side, beside its manifest.

    Raises:
        MisuseError: the name is none, the folder exists, or the model lies elsewhere or in several files.
    """
    if not _NAME.match(name):
        raise MisuseError(
            f"an operator has a name such as scale_rows: small letters, digits and _; got {name!r}"
        )
    folder = parent / name
    if folder.exists():
        raise MisuseError(f"{folder} exists: choose another name or --dir")
    source = Path(model.folder)
    own = [source / MANIFEST_NAME, source / REFERENCE_NAME]
    if len(model.baseline.texts) != 2 or not all(path.is_file() for path in own):
        raise MisuseError(
            f"{model.op_id} is no model: take one with one host and one kernel file, such as silu"
        )
    for path in own:
        _write(folder / path.name, _renamed(path.read_text(encoding="utf-8"), model, name))
    for relative, text in model.baseline.texts.items():
        _write(folder / Path(relative).parent / f"{name}.cpp", _renamed(text, model, name))
    load_operator(name, op_dir=folder)
    return folder


def _renamed(text: str, model: OpSpec, name: str) -> str:
    """Return a text with the model's type and entry renamed; names of the Ascend C and ops APIs stay."""
    new_type = "".join(part.capitalize() for part in name.split("_"))
    own = rf"(?<!AscendC::)(?<!\.)(?<!->)\b(\w*){model.op_type}(?![a-z0-9_])"
    text = re.sub(own, rf"\g<1>{new_type}", text)
    return re.sub(rf"(\bvoid ){model.name}(?=\()", rf"\g<1>{name}", text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
