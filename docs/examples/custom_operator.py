"""An operator of your own, from sources to a search: ``python docs/examples/custom_operator.py ops 10``."""

import shutil
import sys
from pathlib import Path

import numpy as np

from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.suite.loader import load_operator

REFERENCE = """import numpy as np


def reference(inputs, attributes):
    x = inputs["x"].astype(np.float64)
    return {"y": np.maximum(attributes["value"] * x, x)}
"""
SCALE = "AscendC::Muls(yLocal, xLocal, this->value, count);"


def make_leaky(folder: Path) -> Path:
    """Write the operator leaky, y = max(value x, x), with the sources of muls as a start."""
    shutil.copytree(load_operator("muls").folder, folder)
    for side in ("op_host", "op_kernel"):
        file = (folder / side / "muls.cpp").rename(folder / side / "leaky.cpp")
        text = file.read_text().replace(SCALE, "SCALE AscendC::Max(yLocal, yLocal, xLocal, count);")
        file.write_text(text.replace("Muls", "Leaky").replace("muls", "leaky").replace("SCALE", SCALE))
    (folder / "op.toml").write_text((folder / "op.toml").read_text().replace("Muls", "Leaky"))
    (folder / "reference.py").write_text(REFERENCE)
    return folder


def main(folder: str = "ops", budget: str = "10") -> float:
    """Write the operator below a new folder, search with random rewrite rules, and return the speedup."""
    op_dir = make_leaky(Path(folder) / "leaky")
    env = AscendOpEnv(
        "leaky", op_dir=str(op_dir), actions="rules", observations="features", budget=int(budget)
    )
    observation, _ = env.reset(seed=0)
    rng, over, total = np.random.default_rng(0), False, 0.0
    while not over:
        move = int(rng.choice(np.flatnonzero(observation["action_mask"])))
        observation, reward, over, _, info = env.step(move)
        print(info["status"], f"{info['latency_us']:.2f} us, reward {reward:.3f}")
        total += reward
    (Path(folder) / "best.cpp").write_text(env.incumbent.kernel_text)
    env.close()
    return float(np.exp(total))


if __name__ == "__main__":
    print(f"speedup {main(*sys.argv[1:]):.3f}")
