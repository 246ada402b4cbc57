"""References for outputs that the examples of cann-ops leave unchecked.

``gen_data.py`` of an example often computes only one of several golden outputs. The functions here compute
the others in float64, by parameter name. An output without either is open: it is undefined for
the call of the example (such as a gradient that was not requested), or its reference is not written yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ascend_gym.core.records import AttributeValue
from ascend_gym.suite.inputs import Array
from ascend_gym.suite.reference_formulas import rms_norm_of_sum

Inputs = Mapping[str, list[Array]]
Attributes = Mapping[str, AttributeValue]
Reference = Callable[[Inputs, Attributes], dict[str, list[Array]]]

_INT8_MAX = 127.0


def referenced_outputs(op_type: str) -> frozenset[str]:
    """Return the names of the outputs of an operator that ``reference_outputs`` computes."""
    return _REFERENCES[op_type][1] if op_type in _REFERENCES else frozenset()


def reference_outputs(op_type: str, inputs: Inputs, attributes: Attributes) -> dict[str, list[Array]]:
    """Return the outputs that have a reference here, by parameter name.

    Args:
        op_type: type of the operator.
        inputs: input arrays by parameter name.
        attributes: attributes by name.

    Returns:
        For each output, its arrays, in the shapes that the operator defines for these inputs.
    """
    return _REFERENCES[op_type][0](inputs, attributes) if op_type in _REFERENCES else {}


def _wide(inputs: Inputs, name: str) -> Array:
    return inputs[name][0].astype(np.float64)


def _zeros(inputs: Inputs, attributes: Attributes) -> dict[str, list[Array]]:
    return {"x": [np.zeros_like(array) for array in inputs["x"]]}


def _rms_norm(inputs: Inputs, attributes: Attributes) -> tuple[Array, Array]:
    """Return the sum of both inputs and its RMS norm times gamma, both in float64."""
    wide = {name: _wide(inputs, name) for name in ("x1", "x2", "gamma")}
    total, _, normed = rms_norm_of_sum(wide, float(str(attributes.get("epsilon", 1e-6))))
    return total, normed


def _dynamic_quant(values: Array) -> tuple[Array, Array]:
    """Return int8 values and the scale of each row."""
    scale = np.abs(values).max(axis=-1) / _INT8_MAX
    return np.rint(values / scale[..., np.newaxis]).astype(np.int8), scale


def _add_rms_norm_dynamic_quant(inputs: Inputs, attributes: Attributes) -> dict[str, list[Array]]:
    total, normed = _rms_norm(inputs, attributes)
    outputs = {"x": [total]}
    for number in ("1", "2"):
        if inputs.get(f"smooth_scale{number}"):
            values, scale = _dynamic_quant(normed * _wide(inputs, f"smooth_scale{number}"))
            outputs |= {f"y{number}": [values], f"scale{number}": [scale]}
    return outputs


def _add_rms_norm_quant(inputs: Inputs, attributes: Attributes) -> dict[str, list[Array]]:
    return {"x": [_rms_norm(inputs, attributes)[0]]}


def _gated_gelu(inputs: Inputs, attributes: Attributes) -> dict[str, list[Array]]:
    halves = np.split(_wide(inputs, "x"), 2, axis=int(str(attributes.get("dim", -1))))
    return {"gelu": [_gelu(halves[0 if attributes.get("activate_left") else 1])]}


def _gelu(values: Array) -> Array:
    result: Array = 0.5 * values * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (values + 0.044715 * values**3)))
    return result


def _gelu_quant(inputs: Inputs, attributes: Attributes) -> dict[str, list[Array]]:
    if attributes.get("quant_mode", "dynamic") != "dynamic":
        return {}
    scale = _wide(inputs, "input_scale") if inputs.get("input_scale") else 1.0
    return {"out_scale": [_dynamic_quant(_gelu(_wide(inputs, "x")) * scale)[1]]}


def _dynamic_quant_scale(inputs: Inputs, attributes: Attributes) -> dict[str, list[Array]]:
    smooth = _wide(inputs, "smooth_scales") if inputs.get("smooth_scales") else 1.0
    return {"scale": [_dynamic_quant(_wide(inputs, "x") * smooth)[1]]}


_REFERENCES: dict[str, tuple[Reference, frozenset[str]]] = {
    "AddRmsNormDynamicQuant": (
        _add_rms_norm_dynamic_quant,
        frozenset({"x", "y1", "y2", "scale1", "scale2"}),
    ),
    "AddRmsNormQuant": (_add_rms_norm_quant, frozenset({"x"})),
    "DynamicQuant": (_dynamic_quant_scale, frozenset({"scale"})),
    "ForeachZeroInplace": (_zeros, frozenset({"x"})),
    "GeGluV2": (_gated_gelu, frozenset({"gelu"})),
    "GeGluV3": (_gated_gelu, frozenset({"gelu"})),
    "GeluQuant": (_gelu_quant, frozenset({"out_scale"})),
}
