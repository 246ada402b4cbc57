"""Action families: each defines its spaces, and how its actions produce candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Candidate, Diagnostic, OpSpec, Phase
from ascend_gym.env.unicode_text import UnicodeText, is_unicode
from ascend_gym.rewrites.answer import ParseProblem, candidate_from_answer

Mask = np.ndarray[Any, np.dtype[np.int8]]


class ActionFamily(Protocol):
    """Interface of an action family. Spaces are the same for all operators.

    Attributes:
        space: action space.
        mask_space: space of action masks; ``None`` if all actions are always valid.
        mask_is_observed: whether the mask is part of the observation, as masking agents expect.
        vector_length: length of the array that ``vector`` returns.
    """

    space: spaces.Space[Any]
    mask_space: spaces.MultiBinary | None
    mask_is_observed: bool
    vector_length: int

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return the candidate that ``action`` produces, or a diagnostic if it produces none.

        Args:
            spec: operator.
            incumbent: candidate that the action is applied to.
            action: member of ``space``.

        Raises:
            MisuseError: the action is outside the space.
        """
        ...

    def mask(self, spec: OpSpec, incumbent: Candidate) -> Mask | None:
        """Return the mask, a member of ``mask_space`` with 1 for valid actions; ``None`` if all are valid."""
        ...

    def vector(self, action: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Encode an action as numbers from 0 to 1, float32 of shape ``(vector_length,)``."""
        ...

    def number(self, action: Any) -> int | None:
        """Return the number of an action; ``None`` if the family does not number its actions."""
        ...


class _Unmasked:
    mask_space: spaces.MultiBinary | None = None
    mask_is_observed = False
    vector_length = 0

    def mask(self, spec: OpSpec, incumbent: Candidate) -> Mask | None:
        return None

    def vector(self, action: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.zeros(self.vector_length, np.float32)

    def number(self, action: Any) -> int | None:
        return None


class SourceActions(_Unmasked):
    """Complete new texts of the main host and kernel sources; an empty text keeps the incumbent's."""

    def __init__(self, max_source_chars: int) -> None:
        """Create the space for texts of at most ``max_source_chars`` characters."""
        self._max_chars = max_source_chars
        texts = [(side, UnicodeText(max_source_chars)) for side in ("tiling", "kernel")]
        self.space: spaces.Space[Any] = spaces.Dict(dict(texts))

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return the incumbent with its texts replaced; see ``ActionFamily``."""
        if not isinstance(action, dict) or set(action) != {"tiling", "kernel"}:
            raise MisuseError(f"an action is a dict with 'tiling' and 'kernel', got {action!r:.200}")
        for side, text in action.items():
            require_text(f"action[{side!r}]", text, self._max_chars)
        return incumbent.rewritten(tiling=action["tiling"] or None, kernel=action["kernel"] or None)


class EditActions(_Unmasked):
    """A text with SEARCH/REPLACE blocks or whole files, as language models write them.

    ``ascend_gym.rewrites.answer`` describes the format. A text that does not apply to the incumbent costs an
    evaluation and ends as ``build_error``.
    """

    def __init__(self, max_source_chars: int) -> None:
        """Create the space for texts of at most ``max_source_chars`` characters."""
        self._max_chars = max_source_chars
        self.space: spaces.Space[Any] = UnicodeText(max_source_chars)

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return the incumbent with the edits applied; see ``ActionFamily``."""
        require_text("the action", action, self._max_chars)
        answer = candidate_from_answer(action, incumbent)
        return no_candidate(str(answer)) if isinstance(answer, ParseProblem) else answer


def _rules(max_source_chars: int) -> ActionFamily:
    from ascend_gym.env.rewrite_actions import RuleActions  # loads a C++ parser

    return RuleActions()


def _knobs(max_source_chars: int) -> ActionFamily:
    from ascend_gym.env.rewrite_actions import KnobActions  # loads a C++ parser

    return KnobActions()


ACTIONS: Mapping[str, Callable[[int], ActionFamily]] = MappingProxyType(
    {"sources": SourceActions, "edits": EditActions, "rules": _rules, "knobs": _knobs}
)
"""Action families by name; each is called with the maximum length of a source text in characters."""


def require_text(what: str, text: object, max_chars: int) -> None:
    """Check a text.

    Args:
        what: name of the text in messages.
        text: the value to check.
        max_chars: maximum length in characters.

    Raises:
        MisuseError: it is not a string, has lone surrogates, or is too long.
    """
    if not isinstance(text, str) or not is_unicode(text):
        raise MisuseError(f"{what} must be a str without lone surrogates, got {text!r:.80}")
    if len(text) > max_chars:
        raise MisuseError(
            f"{what} has {len(text)} characters, the space holds {max_chars}: raise max_source_chars"
        )


def no_candidate(message: str) -> Diagnostic:
    """Return the diagnostic of an action that produces no candidate."""
    return Diagnostic(phase=Phase.REQUEST, message=message)
