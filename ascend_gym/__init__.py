"""ascend-gym: a research platform for optimising Ascend C operators.

Importing this package registers the environments ``AscendOp-v0`` and ``AscendOpTuning-v0`` with gymnasium and
does nothing else.
"""

from gymnasium.envs.registration import register

__all__: list[str] = []

_ENTRY_POINT = "ascend_gym.env.op_env:AscendOpEnv"
_VECTOR_ENTRY_POINT = "ascend_gym.env.vector_env:AscendOpVectorEnv"

register(id="AscendOp-v0", entry_point=_ENTRY_POINT, vector_entry_point=_VECTOR_ENTRY_POINT)
register(
    id="AscendOpTuning-v0",
    entry_point=_ENTRY_POINT,
    vector_entry_point=_VECTOR_ENTRY_POINT,
    kwargs={"actions": "knobs", "observations": "features"},
)
