"""The policies that PPO trains: networks, and the file that keeps a trained one. Needs PyTorch.

``rules``: every legal move is judged by the same small network from what the environment says of the move, an
embedding of its rule, and the state of the episode; so what is learnt on some operators says something about
others. Of the state only numbers without a dimension are read: shares, and logarithms of latency ratios.
Moves that were tried on the incumbent are not drawn again while there are others: the outcome is known.

``knobs``: a plain network from the features to the positions of all knobs.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ascend_gym.core.append_log import write_whole
from ascend_gym.core.errors import MisuseError
from ascend_gym.env.actions import ACTIONS
from ascend_gym.env.features import feature_names
from ascend_gym.env.move_features import MOVE_FEATURES
from ascend_gym.env.rewrite_actions import KNOB_POSITIONS, KNOBS, SLOTS_PER_RULE
from ascend_gym.rewrites.library import RULES
from baselines.ppo_checkpoints import POLICY_NAME

OBSERVATIONS: Mapping[str, str] = MappingProxyType({"rules": "moves", "knobs": "features"})
"""The observation family that goes with each action family that PPO trains on."""

RULED_OUT = -1e9
"""Logit of an action that is not drawn; finite, so that no gradient is NaN."""

_HIDDEN = 64
_MAX_TEXT_CHARS = 1  # of action families that are only asked for their names
_WITHOUT_DIMENSION = ("budget_left", "log_speedup", "measured_", "aiv_", "aic_", "share_")


class RulesNetwork(nn.Module):
    """Judges each move by itself."""

    def __init__(self) -> None:
        """Make an untrained network, whose moves are about equally likely."""
        super().__init__()
        names = feature_names(ACTIONS["rules"](_MAX_TEXT_CHARS))
        self._columns = [n for n, name in enumerate(names) if name.startswith(_WITHOUT_DIMENSION)]
        state, move = len(self._columns), len(MOVE_FEATURES)
        self.of_state = nn.Linear(state, _HIDDEN)
        self.of_move = nn.Linear(move, _HIDDEN)
        self.of_rule = nn.Parameter(torch.zeros(len(RULES), _HIDDEN))
        self.judge = nn.Sequential(nn.ReLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU(), _small(_HIDDEN, 1))
        self.critic = nn.Sequential(
            nn.Linear(state + move, _HIDDEN),
            nn.Tanh(),
            nn.Linear(_HIDDEN, _HIDDEN),
            nn.Tanh(),
            _small(_HIDDEN, 1),
        )

    def forward(self, observation: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return logits of shape ``(batch, actions)`` and values of shape ``(batch,)``."""
        state = observation["observations"][:, self._columns]
        moves, allowed = observation["moves"], _allowed(observation)
        of_rule = self.of_rule.repeat_interleave(SLOTS_PER_RULE, dim=0)
        hidden = self.of_move(moves) + self.of_state(state)[:, None, :] + of_rule[None, :, :]
        logits = self.judge(hidden).squeeze(-1).masked_fill(~allowed, RULED_OUT)
        share = allowed / allowed.sum(dim=1, keepdim=True)
        offered = (moves * share[:, :, None]).sum(dim=1)
        return logits, self.critic(torch.cat([state, offered], dim=1)).squeeze(-1)


class KnobsNetwork(nn.Module):
    """Chooses the positions of all knobs at once."""

    def __init__(self) -> None:
        """Make an untrained network, whose positions are about equally likely."""
        super().__init__()
        seen = len(feature_names(ACTIONS["knobs"](_MAX_TEXT_CHARS)))
        self.actor = _perceptron(seen, KNOBS * KNOB_POSITIONS)
        self.critic = _perceptron(seen, 1)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of shape ``(batch, knobs * positions)`` and values of shape ``(batch,)``."""
        return self.actor(observation), self.critic(observation).squeeze(-1)


NETWORKS: Mapping[str, type[nn.Module]] = MappingProxyType({"rules": RulesNetwork, "knobs": KnobsNetwork})
"""The networks by action family."""


def network(family: str, seed: int) -> nn.Module:
    """Return an untrained network; the same seed gives the same one."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[family]()


class Policy:
    """A trained policy.

    Attributes:
        family: action family.
    """

    def __init__(self, family: str, trained: nn.Module) -> None:
        """Judge with ``trained``, a network of that family."""
        self.family = family
        self._network = trained.eval()

    def logits(self, observation: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the logits of one observation of the environment, float64, as the network shapes them."""
        if isinstance(observation, Mapping):
            batch: Any = {name: torch.as_tensor(part)[None] for name, part in observation.items()}
        else:
            batch = torch.as_tensor(observation)[None]
        with torch.no_grad():
            logits, _ = self._network(batch)
        return np.asarray(logits[0].double())


def save_policy(folder: Path, family: str, weights: Mapping[str, Any]) -> None:
    """Write the weights of a network of that family into a checkpoint folder."""
    tensors = {name: torch.as_tensor(weight) for name, weight in weights.items()}
    held = io.BytesIO()
    torch.save({"family": family, "inputs": _inputs(family), "weights": tensors}, held)
    write_whole(folder / POLICY_NAME, held.getvalue())


def load_policy(path: Path) -> Policy:
    """Read a policy; nothing in the file is executed.

    Raises:
        MisuseError: the file is no policy, or one of a version with other rules or features.
    """
    try:
        held = torch.load(path, weights_only=True, map_location="cpu")
        family, inputs, weights = held["family"], held["inputs"], held["weights"]
        known = _inputs(family)
        trained = NETWORKS[family]()
    except (OSError, RuntimeError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
        raise MisuseError(f"{path} is no policy of 'ascend-gym train': {error}") from error
    if inputs != known:
        raise MisuseError(
            f"{path} was trained with other rules or features than this version has: train again"
        )
    trained.load_state_dict(weights)
    return Policy(family, trained)


def _inputs(family: str) -> dict[str, list[str]]:
    """Return the meaning of everything that a network of the family reads."""
    names = {"features": list(feature_names(ACTIONS[family](_MAX_TEXT_CHARS)))}
    if family == "knobs":
        return names
    return {**names, "moves": list(MOVE_FEATURES), "rules": [rule.name for rule in RULES]}


def _allowed(observation: Mapping[str, Tensor]) -> Tensor:
    """Return what may be drawn, bool of shape ``(batch, actions)``: legal and, if possible, not tried."""
    legal = observation["action_mask"].bool()
    fresh = legal & (observation["moves"][:, :, MOVE_FEATURES.index("tried")] == 0)
    allowed = torch.where(fresh.any(dim=1, keepdim=True), fresh, legal)
    return torch.where(allowed.any(dim=1, keepdim=True), allowed, torch.ones_like(legal))


def _perceptron(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(inputs),
        nn.Linear(inputs, 2 * _HIDDEN),
        nn.Tanh(),
        nn.Linear(2 * _HIDDEN, 2 * _HIDDEN),
        nn.Tanh(),
        _small(2 * _HIDDEN, outputs),
    )


def _small(inputs: int, outputs: int) -> nn.Linear:
    """Return a last layer that says almost nothing before it is trained."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=0.01)
    nn.init.zeros_(layer.bias)
    return layer
