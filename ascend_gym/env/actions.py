"""Action families: the space that an agent acts in, and the candidate that an action stands for."""

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
    """One way to act. Spaces are the same for all operators.

    Attributes:
        space: what an agent chooses from.
        mask_space: what tells the actions that mean something, or ``None`` where all may.
        mask_is_observed: whether the mask is part of the observation, as masking agents expect it.
        vector_length: length of what ``vector`` returns.
    """

    space: spaces.Space[Any]
    mask_space: spaces.MultiBinary | None
    mask_is_observed: bool
    vector_length: int

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return what ``action`` stands for; a diagnostic where that is no candidate.

        Raises:
            MisuseError: the action is outside the space.
        """
        ...

    def mask(self, spec: OpSpec, incumbent: Candidate) -> Mask | None:
        """Return a member of ``mask_space``: 1 where an action means something."""
        ...

    def vector(self, action: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return an action as numbers from 0 to 1, float32 of shape ``(vector_length,)``."""
        ...

    def number(self, action: Any) -> int | None:
        """Return the number of an action where the family numbers its actions, else ``None``."""
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
    """The whole new text of either main source; an empty text keeps the incumbent's."""

    def __init__(self, max_source_chars: int) -> None:
        """Take texts of up to ``max_source_chars`` characters."""
        self._max_chars = max_source_chars
        texts = [(side, UnicodeText(max_source_chars)) for side in ("tiling", "kernel")]
        self.space: spaces.Space[Any] = spaces.Dict(dict(texts))

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return the incumbent with the texts replaced; see ``ActionFamily``."""
        if not isinstance(action, dict) or set(action) != {"tiling", "kernel"}:
            raise MisuseError(f"an action is a dict with 'tiling' and 'kernel', got {action!r:.200}")
        for side, text in action.items():
            require_text(f"action[{side!r}]", text, self._max_chars)
        return incumbent.rewritten(tiling=action["tiling"] or None, kernel=action["kernel"] or None)


class EditActions(_Unmasked):
    """A text with SEARCH/REPLACE blocks, or whole files, as language models write them.

    ``ascend_gym.rewrites.answer`` tells the format. A text that does not apply to the incumbent costs an
    evaluation and ends as ``build_error``.
    """

    def __init__(self, max_source_chars: int) -> None:
        """Take texts of up to ``max_source_chars`` characters."""
        self._max_chars = max_source_chars
        self.space: spaces.Space[Any] = UnicodeText(max_source_chars)

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return the incumbent with the edits made; see ``ActionFamily``."""
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
"""Action families by name, each made with the longest source text in characters."""


def require_text(what: str, text: object, max_chars: int) -> None:
    """Check a text.

    Raises:
        MisuseError: it is no text, has lone surrogates, or is longer than ``max_chars`` characters.
    """
    if not isinstance(text, str) or not is_unicode(text):
        raise MisuseError(f"{what} must be a str without lone surrogates, got {text!r:.80}")
    if len(text) > max_chars:
        raise MisuseError(
            f"{what} has {len(text)} characters, the space holds {max_chars}: raise max_source_chars"
        )


def no_candidate(message: str) -> Diagnostic:
    """Return the diagnostic of an action that stands for no candidate."""
    return Diagnostic(phase=Phase.REQUEST, message=message)
