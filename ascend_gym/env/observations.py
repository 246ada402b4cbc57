"""Observation families: encodings of an episode as text, numbers or a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from gymnasium import spaces

from ascend_gym.core.errors import MisuseError
from ascend_gym.env.actions import ActionFamily
from ascend_gym.env.episode import Episode
from ascend_gym.env.features import feature_space, features
from ascend_gym.env.text_observation import observation_space, observe


class ObservationFamily(Protocol):
    """Interface of an observation family. Spaces are the same for all operators."""

    space: spaces.Space[Any]

    def observe(self, episode: Episode) -> Any:
        """Return the observation, a member of ``space``; later steps do not modify it."""
        ...


@dataclass(frozen=True)
class TextLimits:
    """Sizes of the spaces: evaluations, and the longest texts in characters."""

    budget: int
    max_source_chars: int
    max_diagnostic_chars: int


class TextObservations:
    """Sources and diagnostics as text, with the corresponding numbers, in a ``Dict``."""

    def __init__(self, actions: ActionFamily, limits: TextLimits) -> None:
        """Create the space."""
        self._actions, self._max_diagnostic_chars = actions, limits.max_diagnostic_chars
        plain = observation_space(limits.budget, limits.max_source_chars, limits.max_diagnostic_chars)
        self.space: spaces.Space[Any] = spaces.Dict({**plain.spaces, **_mask_spaces(actions)})

    def observe(self, episode: Episode) -> Any:
        """Return the texts and numbers; see ``ascend_gym.env.text_observation``."""
        return {**observe(episode, self._max_diagnostic_chars), **_masks(self._actions, episode)}


class FeatureObservations:
    """The features as a ``Box``; with an observed mask a ``Dict`` of ``observations`` and ``action_mask``."""

    def __init__(self, actions: ActionFamily, limits: TextLimits) -> None:
        """Create the space."""
        self._actions = actions
        box, masks = feature_space(actions), _mask_spaces(actions)
        self.space: spaces.Space[Any] = spaces.Dict({"observations": box, **masks}) if masks else box

    def observe(self, episode: Episode) -> Any:
        """Return the features; ``ascend_gym.env.features.feature_names`` names them."""
        seen, masks = features(episode, self._actions), _masks(self._actions, episode)
        return {"observations": seen, **masks} if masks else seen


class MoveObservations:
    """The features of the episode and of each action in a ``Dict``, for the action family ``rules``."""

    def __init__(self, actions: ActionFamily, limits: TextLimits) -> None:
        """Create the space.

        Raises:
            MisuseError: the action family is not ``rules``.
        """
        from ascend_gym.env.move_features import move_features, move_space  # loads a C++ parser
        from ascend_gym.env.rewrite_actions import RuleActions

        if not isinstance(actions, RuleActions):
            raise MisuseError("observations='moves' describes rewrite rules: it goes with actions='rules'")
        self._actions, self._moves_of = actions, move_features
        box = feature_space(actions)
        self.space: spaces.Space[Any] = spaces.Dict(
            {"observations": box, "moves": move_space(), **_mask_spaces(actions)}
        )

    def observe(self, episode: Episode) -> Any:
        """Return the features; see ``ascend_gym.env.features`` and ``ascend_gym.env.move_features``."""
        seen = {"observations": features(episode, self._actions), "moves": self._moves_of(episode)}
        return {**seen, **_masks(self._actions, episode)}


class GraphObservations:
    """The incumbent's kernel as a ``Graph``, with the features, in a ``Dict``."""

    def __init__(self, actions: ActionFamily, limits: TextLimits) -> None:
        """Create the space."""
        from ascend_gym.env.kernel_graph import graph_space, kernel_graph  # loads a C++ parser

        self._actions, self._graph_of = actions, kernel_graph
        self.space: spaces.Space[Any] = spaces.Dict(
            {"graph": graph_space(), "features": feature_space(actions), **_mask_spaces(actions)}
        )

    def observe(self, episode: Episode) -> Any:
        """Return graph and features; see ``ascend_gym.env.kernel_graph``."""
        seen = {"graph": self._graph_of(episode.incumbent), "features": features(episode, self._actions)}
        return {**seen, **_masks(self._actions, episode)}


OBSERVATIONS: Mapping[str, Callable[[ActionFamily, TextLimits], ObservationFamily]] = MappingProxyType(
    {
        "text": TextObservations,
        "features": FeatureObservations,
        "moves": MoveObservations,
        "graph": GraphObservations,
    }
)
"""Observation families by name."""


def _mask_spaces(actions: ActionFamily) -> dict[str, spaces.Space[Any]]:
    if actions.mask_space is None or not actions.mask_is_observed:
        return {}
    return {"action_mask": actions.mask_space}


def _masks(actions: ActionFamily, episode: Episode) -> dict[str, Any]:
    observed = actions.mask_space is not None and actions.mask_is_observed
    return {"action_mask": actions.mask(episode.spec, episode.incumbent)} if observed else {}
