"""ascend-gym: a research platform for optimising Ascend C operators.

Importing this package registers the environments ``AscendOp-v0`` and ``AscendOpTuning-v0`` with gymnasium and
does nothing else. It is also a plugin of ``verifiers``, which looks for its classes by name when it is asked
for the task set ``ascend_gym``; they are loaded then.
"""

from importlib import import_module
from typing import Any

from gymnasium.envs.registration import register

__version__ = "0.1.0"
__all__ = ["AscendEnv", "AscendHarness", "AscendTaskset", "__version__"]

_OF_VERIFIERS = ("AscendEnv", "AscendHarness", "AscendTaskset")
_ENTRY_POINT = "ascend_gym.env.op_env:AscendOpEnv"
_VECTOR_ENTRY_POINT = "ascend_gym.env.vector_env:AscendOpVectorEnv"

register(id="AscendOp-v0", entry_point=_ENTRY_POINT, vector_entry_point=_VECTOR_ENTRY_POINT)
register(
    id="AscendOpTuning-v0",
    entry_point=_ENTRY_POINT,
    vector_entry_point=_VECTOR_ENTRY_POINT,
    kwargs={"actions": "knobs", "observations": "features"},
)


def __getattr__(name: str) -> Any:
    if name in _OF_VERIFIERS:
        return getattr(import_module("ascend_gym.chat.verifiers_env"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
