"""Search methods from outside this package: ``FILE.py:CLASS``, ``MODULE:CLASS``, or an entry point.

The named object is called with a ``Setting`` and returns a ``Strategy``.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from ascend_gym.cli.guarded_method import failures_told
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Strategy

GROUP = "ascend_gym.methods"
FORMS = "FILE.py:CLASS, MODULE:CLASS, or an entry point of the group " + GROUP

_PLACED = re.compile(r"(?P<place>[^:,]+):(?P<attribute>[A-Za-z_]\w*)")


def resolved(method: str) -> str:
    """Return the method's name with an absolute path, so that it is valid in any working directory.

    Raises:
        MisuseError: the entry point or file does not exist, or the name has none of the forms.
    """
    placed = _PLACED.fullmatch(method)
    if placed is None:
        _entry_point(method)
        return method
    if not placed["place"].endswith(".py"):
        return method
    path = Path(placed["place"])
    if not path.is_absolute() and not path.is_file():  # an absolute one may be that of an old run
        raise MisuseError(f"method {method!r}: there is no file {path.resolve()}")
    return f"{path.resolve()}:{placed['attribute']}"


def short_name(method: str) -> str:
    """Return the method's name in tables: the class of a file or module, or the entry point."""
    placed = _PLACED.fullmatch(method)
    return placed["attribute"] if placed else method


def identity(method: str) -> dict[str, str]:
    """Return the identity of a method: its name and the digest of its file.

    Raises:
        MisuseError: the file cannot be read.
    """
    placed = _PLACED.fullmatch(method)
    if placed is None or not placed["place"].endswith(".py"):
        return {"method": method}
    path = Path(placed["place"])
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise MisuseError(f"method {method!r} cannot be read: {error}; put its file back") from error
    return {"method": told_name(method), "method_digest": digest}


def told_name(method: str) -> str:
    """Return the method's name in messages and journals: without the folder of its file."""
    placed = _PLACED.fullmatch(method)
    return f"{Path(placed['place']).name}:{placed['attribute']}" if placed else method


def entry_point_names() -> list[str]:
    """Return the names of all methods of installed packages."""
    return sorted(entry_points(group=GROUP).names)


def load(method: str) -> Callable[[Any], Strategy]:
    """Import a method.

    Raises:
        MisuseError: it cannot be imported, or is not callable.
    """
    with failures_told(told_name(method), "import"):
        try:
            found = _imported(method)
        except (ImportError, OSError, SyntaxError) as error:
            raise MisuseError(
                f"method {method!r} cannot be imported: {error}; expected {FORMS}, on each host that runs it"
            ) from error
    if not callable(found):
        raise MisuseError(
            f"method {method!r}: expected a class or function that takes a Setting, got {found!r}"
        )
    return found  # type: ignore[no-any-return]


def _imported(method: str) -> Any:
    placed = _PLACED.fullmatch(method)
    if placed is None:
        return _entry_point(method).load()
    module = _module(placed["place"])
    if hasattr(module, placed["attribute"]):
        return getattr(module, placed["attribute"])
    own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
    classes = [each.__name__ for each in own if isinstance(each, type)]
    raise MisuseError(
        f"{Path(placed['place']).name} has no class {placed['attribute']}; "
        f"it has {', '.join(classes) or 'none of its own'}"
    )


def _entry_point(name: str) -> EntryPoint:
    found = entry_points(group=GROUP, name=name)
    if not found:
        raise MisuseError(f"no method {name!r}; one of your own is {FORMS}")
    return next(iter(found))


def _module(place: str) -> ModuleType:
    """Import a module by name, also from the working directory, or the file at a path."""
    if not place.endswith(".py"):
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        return importlib.import_module(place)
    name = f"ascend_gym_method_{hashlib.sha256(place.encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise ImportError(f"{place} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for it there
    loaded = False
    try:
        spec.loader.exec_module(module)
        loaded = True
    finally:
        if not loaded:
            del sys.modules[name]
    return module
