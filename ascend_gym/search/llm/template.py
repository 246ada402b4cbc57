"""Templates of prompts: Markdown files in folders ``prompts``, with ``${fields}``."""

from __future__ import annotations

import re
from importlib.resources import files

from ascend_gym.core.errors import MisuseError

_FIELD = re.compile(r"\$\{(\w+)\}")


def render(name: str, /, *, package: str = __package__, **values: str) -> str:
    """Return template ``name`` of a package's folder ``prompts`` with its ``${fields}`` filled.

    The values are not looked into.

    Raises:
        MisuseError: a field is missing, or a value has no field.
    """
    template = (files(package) / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    fields = set(_FIELD.findall(template))
    if fields != set(values):
        raise MisuseError(f"prompt {name!r} has the fields {sorted(fields)}, got {sorted(values)}")
    return _FIELD.sub(lambda match: values[match[1]], template)
