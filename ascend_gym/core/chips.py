"""Names of supported chips, as requests use them: built-in ones, and those of users' chip files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ascend_gym.core.config import ENV_CHIP_FILES, add_chip_file, chip_files
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.text import nearest

CHIPS = ("910B1", "910B2", "910B3", "910B4", "910_93")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_DIGITS = 8


def require_chip(name: str) -> str:
    """Return the name that requests use for a chip.

    Args:
        name: one of ``CHIPS``; a file ``FILE.toml`` that describes a chip, which this process and its
            children know from then on; or the name of one of ``own_chips``, with or without its digest.

    Raises:
        MisuseError: the chip does not exist, or the file has no usable name for it.
    """
    if name in CHIPS:
        return name
    if name.endswith(".toml"):
        full_name = own_chip_name(Path(name))
        add_chip_file(Path(name).resolve())
        return full_name
    own = own_chips()
    for full_name in own:
        if name in (full_name, full_name.partition("@")[0]):
            return full_name
    raise MisuseError(no_such_chip(name, [*CHIPS, *own]))


def recall_chip(chip: str, path: Path, began: str) -> None:
    """Make a chip of one's own known to this process and its children again, as ``require_chip`` did before.

    Args:
        chip: its name with its digest.
        path: its file.
        began: what began with it, for the message: ``run`` or ``sweep``.

    Raises:
        MisuseError: the file cannot be read, or has other figures than it had.
    """
    if chip in own_chips():
        return
    name = own_chip_name(path)
    if name != chip:
        raise MisuseError(
            f"{path} now has other figures than the {began} began with (it is {name}, not {chip}): "
            f"restore the file, or begin a new {began}"
        )
    add_chip_file(path)


def no_such_chip(name: str, known: list[str]) -> str:
    """Return the message about a name that is none of the ``known`` chips."""
    message = f"no chip is named {name!r}{nearest(name, known)}; there are: {', '.join(known)}"
    return f"{message}; the file of another one can be given as --chip-file FILE.toml or by {ENV_CHIP_FILES}"


def own_chips() -> Mapping[str, Path]:
    """Return the chip files of users by chip name, without files that do not define a name.

    They are the files in ``$ASCEND_GYM_CHIP_FILES`` and those that were given to ``require_chip``.
    """
    named: dict[str, Path] = {}
    for path in chip_files():
        try:
            named[own_chip_name(path)] = path
        except MisuseError:  # a request for this file reports the error; other chips do not need it
            continue
    return named


def own_chip_name(path: Path) -> str:
    """Return ``NAME@DIGEST`` for a chip file.

    The digest of its figures is part of the name, so that a result belongs to the figures that it was priced
    with, and daemons with another version of the file refuse.

    Raises:
        MisuseError: the file cannot be read, or its ``name`` is missing, is one of ours or has other letters
            than ``A-Z a-z 0-9 _ . -``.
    """
    from ascend_gym.core.toml_file import read_toml

    try:
        content = read_toml(path)
    except (OSError, ValueError) as error:
        raise MisuseError(f"chip file {path} cannot be read: {error}") from error
    name = content.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in CHIPS:
        raise MisuseError(
            f'chip file {path}: expected name = "NAME" of letters, digits, _, . and -, which is none of '
            f"{', '.join(CHIPS)}; got {name!r}"
        )
    return f"{name}@{digest_of('chip file', repr(content))[:_DIGITS]}"
