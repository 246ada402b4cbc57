"""Guards against failures of methods from outside the package, which end a run with one message."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import BudgetExceededError, InfrastructureError, MisuseError
from ascend_gym.core.protocols import Builder, BuildingStrategy, Proposal, Strategy
from ascend_gym.core.records import EvalResult
from ascend_gym.search.outcome import MethodFailedError

_FUNCTIONS = ("propose", "observe", "close")
_NOT_ITS_FAULT = (BudgetExceededError, InfrastructureError, MisuseError)


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
            if not isinstance(proposals, list) or not all(isinstance(each, Proposal) for each in proposals):
                raise TypeError(f"expected a list of Proposal, got {proposals!r:.200}")
            return proposals

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
