"""The policies of PPO as modules of RLlib. Needs Ray and PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchCategorical, TorchMultiCategorical
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule

from ascend_gym.env.rewrite_actions import KNOB_POSITIONS, KNOBS
from baselines.ppo_policy import network

_DISTRIBUTIONS = {
    "rules": TorchCategorical,
    "knobs": TorchMultiCategorical.get_partial_dist_cls(input_lens=[KNOB_POSITIONS] * KNOBS),
}


class PolicyModule(TorchRLModule, ValueFunctionAPI):
    """A network of ``baselines.ppo_policy``.

    ``model_config`` has ``family``, the action family, and ``seed``, which decides the untrained weights.
    """

    def setup(self) -> None:
        """Make the network."""
        self.network = network(self.model_config["family"], self.model_config["seed"])

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Return the inputs of the distribution that actions are drawn from."""
        logits, values = self.network(batch[Columns.OBS])
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: values}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        """Return the values, float32 of shape ``(batch,)``; ``embeddings`` are those of a forward pass."""
        return self.network(batch[Columns.OBS])[1] if embeddings is None else embeddings

    def get_inference_action_dist_cls(self) -> type[Any]:
        """Return the distribution of actions."""
        return _DISTRIBUTIONS[self.model_config["family"]]
