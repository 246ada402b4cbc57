"""Programs of the staged language that are known to be right, for prompts and for docs/staged.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from importlib.resources import files

from ascend_gym.core.records import Candidate, OpSpec
from ascend_gym.staged.lower import Pass, lower
from ascend_gym.staged.parse import parse
from ascend_gym.staged.verify import Verified, verify
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.skeleton import interface_of

_SUITE, _ENDING = "generate", ".staged"
_BASIC = ("relu", "sigmoid")  # the second for the first itself


class Examples(str, Enum):
    """Which example a prompt shows."""

    NONE = "none"
    BASIC = "basic"
    CATEGORY = "category"


@dataclass(frozen=True)
class Example:
    """An operator of the suite with its program.

    Attributes:
        spec: the operator.
        text: its program.
    """

    spec: OpSpec
    text: str

    @cached_property
    def verified(self) -> Verified:
        """The program as the verifier knows it."""
        return verify(parse(self.text), interface_of(self.spec), self.spec.cases)

    def lowered(self, upto: Pass = Pass.ALIGN) -> Candidate:
        """Return its sources after a pass."""
        return lower(self.verified, upto)


def example_names() -> list[str]:
    """Return the operators of the suite ``generate`` that have an example."""
    found = (each.name for each in files(__package__).iterdir())
    return sorted(name.removesuffix(_ENDING) for name in found if name.endswith(_ENDING))


@cache
def example_named(name: str) -> Example:
    """Return the example of an operator.

    Raises:
        KeyError: it has none.
    """
    if name not in example_names():
        raise KeyError(f"no example {name!r}; there are {', '.join(example_names())}")
    text = (files(__package__) / f"{name}{_ENDING}").read_text(encoding="utf-8")
    return Example(load_operator(f"{_SUITE}/{name}"), text)


def example_for(spec: OpSpec, wanted: Examples) -> Example | None:
    """Return what a prompt for an operator shows, never the operator itself.

    Args:
        spec: the operator.
        wanted: ``basic`` for one that works element by element; ``category`` for one of the operator's
            category, and a basic one where there is none.
    """
    if wanted is Examples.NONE:
        return None
    others = [name for name in example_names() if name != spec.name]
    if wanted is Examples.CATEGORY:
        kin = [each for each in map(example_named, others) if each.spec.category == spec.category]
        if kin:
            return kin[0]
    return example_named(next(name for name in _BASIC if name in others))
