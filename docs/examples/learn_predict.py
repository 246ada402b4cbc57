"""``learn`` and ``predict`` of Stable-Baselines3: ``python docs/examples/learn_predict.py add 40``."""

import sys
from typing import Any

import gymnasium
import numpy as np

import ascend_gym  # noqa: F401  registers the environments


class CrossEntropy:
    """Learns which position of each knob pays; ``PPO("MlpPolicy", env)`` takes the same environment."""

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:
        self.env, self._rng = env, np.random.default_rng(seed)
        knobs, positions = env.action_space.nvec.size, int(env.action_space.nvec[0])
        self._preference = np.zeros((knobs, positions))
        self._preference[:, 0] = 2.0  # position 0 leaves a knob's place as it is

    def predict(self, observation: Any, deterministic: bool = False) -> tuple[np.ndarray, None]:
        """Return positions of all knobs: the preferred ones, or drawn by preference."""
        noise = 0.0 if deterministic else self._rng.gumbel(size=self._preference.shape)
        return np.argmax(self._preference + noise, axis=1), None

    def learn(self, total_timesteps: int) -> "CrossEntropy":
        """Take steps, and prefer what got a reward, here the speedup over the baseline."""
        observation, _ = self.env.reset(seed=0)
        for _ in range(total_timesteps):
            action, _ = self.predict(observation)
            observation, reward, terminated, truncated, _ = self.env.step(action)
            self._preference[np.arange(len(action)), action] += float(reward) - 1.0
            if terminated or truncated:
                observation, _ = self.env.reset()
        return self


def main(operator: str = "add", steps: str = "40") -> CrossEntropy:
    """Learn on an operator and return what has learnt."""
    twin = gymnasium.make("AscendOpTuning-v0", operator=operator, reward="speedup", budget=int(steps) + 1)
    model = CrossEntropy(twin).learn(int(steps))
    print(f"best speedup {twin.unwrapped.get_state().episode.speedup:.3f}")
    twin.close()
    return model


if __name__ == "__main__":
    model = main(*sys.argv[1:])
