"""A random agent on rewrite rules: ``python docs/examples/random_agent.py gelu 20``."""

import sys

import gymnasium
import numpy as np

import ascend_gym  # noqa: F401  registers the environments


class RandomAgent:
    """Draws one of the moves that the mask allows."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def act(self, observation: dict[str, np.ndarray]) -> int:
        """Return the number of a move."""
        return int(self._rng.choice(np.flatnonzero(observation["action_mask"])))


def main(operator: str = "gelu", budget: str = "20", seed: str = "0") -> float:
    """Play one episode and return its undiscounted return, the logarithm of the speedup."""
    env = gymnasium.make(
        "AscendOp-v0", operator=operator, budget=int(budget), actions="rules", observations="features"
    )
    agent, total = RandomAgent(int(seed)), 0.0
    observation, info = env.reset(seed=int(seed))
    over = False
    while not over:
        observation, reward, terminated, truncated, info = env.step(agent.act(observation))
        total, over = total + float(reward), terminated or truncated
        print(
            f"{info['evaluations']:3} {info['status']:14} {info['latency_us']:9.2f} us  reward {reward:.3f}"
        )
    print(f"speedup {np.exp(total):.3f}")
    env.close()
    return total


if __name__ == "__main__":
    main(*sys.argv[1:])
