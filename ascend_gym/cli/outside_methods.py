"""Search methods from outside this package: ``FILE.py:CLASS``, ``MODULE:CLASS``, or an entry point.

The named object is called with a ``Setting`` and returns a ``Strategy``.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from ascend_gym.core.errors import BudgetExceededError, InfrastructureError, MisuseError
from ascend_gym.core.protocols import Builder, BuildingStrategy, Proposal, Strategy
from ascend_gym.core.records import EvalResult
from ascend_gym.search.outcome import MethodFailedError

_FUNCTIONS = ("propose", "observe", "close")
_NOT_ITS_FAULT = (BudgetExceededError, InfrastructureError, MisuseError)

GROUP = "ascend_gym.methods"
FORMS = "FILE.py:CLASS, MODULE:CLASS, or an entry point of the group " + GROUP
_PLACED = re.compile(r"(?P<place>[^:,]+):(?P<attribute>[A-Za-z_]\w*)")


def guarded(name: str, factory: Callable[[Any], Strategy]) -> Callable[[Any], Strategy]:
    """Return a factory whose strategies raise nothing but what ``run_search`` understands.

    Args:
        name: the method's name in messages.
        factory: makes the strategy.
    """

    def made(setting: Any) -> Strategy:
        with failures_told(name, "__init__"):
            strategy = factory(setting)
        missing = [each for each in _FUNCTIONS if not callable(getattr(strategy, each, None))]
        if missing:
            raise MisuseError(
                f"method {name} has no {' and no '.join(missing)}: expected the functions "
                f"{', '.join(_FUNCTIONS)} (docs/own_method.md)"
            )
        builds = isinstance(strategy, BuildingStrategy)
        return _GuardedBuilding(name, strategy) if builds else _Guarded(name, strategy)

    return made


class _Guarded:
    """A strategy whose failures are ``MethodFailedError``."""

    def __init__(self, name: str, strategy: Any) -> None:
        self._name, self._strategy = name, strategy

    def propose(self, limit: int) -> list[Proposal]:
        with failures_told(self._name, "propose"):
            proposals = self._strategy.propose(limit)
            return _checked(proposals)

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        with failures_told(self._name, "observe"):
            self._strategy.observe(proposal, result)

    def close(self) -> None:
        with failures_told(self._name, "close"):
            self._strategy.close()


class _GuardedBuilding(_Guarded):
    """The same for one that builds candidates before it proposes any."""

    def use_builder(self, builder: Builder) -> None:
        with failures_told(self._name, "use_builder"):
            self._strategy.use_builder(builder)


def _checked(proposals: Any) -> list[Proposal]:
    if not isinstance(proposals, list):
        got = "None" if proposals is None else f"a value of type {type(proposals).__name__}"
        raise TypeError(f"expected a list of Proposal, got {got}")
    for index, each in enumerate(proposals):
        if not isinstance(each, Proposal):
            got = f"a list whose item {index} is of type {type(each).__name__}"
            raise TypeError(f"expected a list of Proposal, got {got}")
    return proposals


@contextmanager
def failures_told(name: str, function: str) -> Iterator[None]:
    """Convert what a function of the method raises in the block.

    Raises:
        MethodFailedError: it raised something; the message says what and where.
    """
    try:
        yield
    except _NOT_ITS_FAULT:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise MethodFailedError(f"method {name} failed in {function}: {what}{_place(error)}") from error


def _place(error: Exception) -> str:
    """Return the last line of the method's own file on the way to the error, in parentheses."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def _is_ours(file: str) -> bool:
    """Return whether a file on the way to an error calls the method's own."""
    return "importlib" in file or Path(file).parent == Path(__file__).parent


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
