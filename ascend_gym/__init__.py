"""ascend-gym: a research platform for optimising Ascend C operators.

Importing this package registers the environment ``AscendOp-v0`` with gymnasium and does nothing else.
"""

from gymnasium.envs.registration import register

__all__: list[str] = []

register(id="AscendOp-v0", entry_point="ascend_gym.env.op_env:AscendOpEnv")
