"""The reader of EvoKernel: bindings as Python, names, and what counts as right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "fidelity"))
from evokernel import operators
from evokernel_binding import NotUnderstoodError, read_binding
from evokernel_rows import RIGHT, WRONG, judged

BINDING = """
#include "pytorch_npu_helper.hpp"
static inline int64_t out_dim(int64_t in, int64_t k) { return (in - k) / 2 + 1; }  // a "word" of Python
static at::Tensor one_of(const at::Tensor& t) { if (!t.defined()) return at::ones({1}, t.options());
    return t; }

at::Tensor pool_impl_npu(
    const at::Tensor& x, const c10::optional<at::Tensor>& bias_opt, int64_t k, double eps)
{
    TORCH_CHECK(x.device().is_privateuseone(), "x must be on the device");
    TORCH_CHECK(x.dim() == 2 && x.size(1) >= k, "x must be {rows, columns}");
    constexpr int64_t A = 3, B = 4;
    auto filled = [&](int64_t v) -> at::Tensor {
        at::Tensor t = at::empty({1}, x.options()); t.fill_(v); return t; };
    at::Tensor bias;
    if (bias_opt.has_value()) { bias = *bias_opt; } else if (k > 1) bias = at::zeros({A * B}, x.options());
    const float half = static_cast<float>(k) / 2.0f;
    auto y = at::empty({x.size(0), k > 0 ? out_dim(x.size(1), k) : 1}, x.options());
    EXEC_NPU_CMD(aclnnPoolCustom, x, bias, filled(k), half, eps, y);
    return y;
}
TORCH_LIBRARY_IMPL(myops, PrivateUse1, m) { m.impl("pool_custom", &pool_impl_npu); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("pool_custom", &pool_impl_npu, py::arg("x"), py::arg("eps") = 1e-5); }
"""


class Shape:
    """A tensor with nothing but a shape."""

    def __init__(self, *extents: int) -> None:
        self.extents, self.fill = extents, None

    def dim(self) -> int:
        return len(self.extents)

    def size(self, axis: int) -> int:
        return self.extents[axis]

    def options(self) -> None:
        return None

    def has_value(self) -> bool:
        return False

    def fill_(self, value: Any) -> None:
        self.fill = value


def run(binding_text: str, *arguments: Any) -> list[Any]:
    """Return what a binding calls its operator with."""
    binding, calls = read_binding(binding_text), []

    def check(condition: bool, text: str) -> None:
        assert condition, text

    class At:
        empty = zeros = ones = staticmethod(lambda extents, options: Shape(*extents))

    names = {"at": At, "check": check, "divide": lambda a, b: a // b if isinstance(a, int) else a / b}
    names["execute"] = lambda name, given: calls.append((name, given))
    exec(compile(binding.python, "binding", "exec"), names)
    names[binding.entry](*arguments)
    return calls


def test_a_binding_is_read_as_python() -> None:
    ((name, (x, bias, count, half, eps, y)),) = run(BINDING, Shape(5, 9), Shape(), 3, 1e-6)
    assert name == "aclnnPoolCustom"
    assert (x.extents, bias.extents, count.fill, half, eps, y.extents) == (
        (5, 9),
        (12,),
        3,
        1.5,
        1e-6,
        (5, 4),
    )


def test_checks_of_a_binding_hold_and_those_of_devices_do_not() -> None:
    with pytest.raises(AssertionError, match=r"x\.dim\(\) == 2"):
        run(BINDING, Shape(5, 2), Shape(), 3, 1e-6)


def test_parameters_have_names_kinds_and_defaults() -> None:
    binding = read_binding(BINDING)
    assert [(one.name, one.kind, one.optional) for one in binding.parameters] == [
        ("x", "tensor", False),
        ("bias_opt", "tensor", True),
        ("k", "number", False),
        ("eps", "number", False),
    ]
    assert binding.defaults["eps"] == 1e-5


@pytest.mark.parametrize(
    "text", ["", 'm.impl("f", &f); at::Tensor f(int k) { for (auto& t : all) { t.sort(); } return k; }']
)
def test_what_is_not_understood_is_said(text: str) -> None:
    with pytest.raises(NotUnderstoodError):
        read_binding(text)


def test_outputs_are_judged_as_the_data_set_does() -> None:
    expected = np.array([1.0, -2.0, 400.0], np.float32)
    other = np.array([5.0, 5.0, 4.0], np.float32)
    assert judged(expected + np.float32(0.009), [other, expected])[0] == RIGHT
    assert judged(expected * np.float32(1.02), [other, expected])[0] == WRONG
    assert judged(np.full(3, np.nan, np.float32), [expected]) == (WRONG, np.inf)
    assert judged(np.zeros(3, np.float32), [np.full(3, 0.001, np.float32)])[0] == WRONG
    assert judged(expected, [expected[:2]])[0] == WRONG


def test_operators_are_found_with_their_references(tmp_path: Path) -> None:
    references = tmp_path / "pytorch-references" / "level1"
    references.mkdir(parents=True)
    (references / "26_GELU_.py").touch()
    for name, said in (
        ("GeluCustom", '{"compiled": true, "correctness": true, "performance": {"mean": 0.5}}'),
    ):
        folder = tmp_path / "ops-kernelbench-910b" / name
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(said, encoding="utf-8")
    (found,) = operators(tmp_path)
    assert (found.name, found.reference.name, found.correct, found.device_ms) == (
        "GeluCustom",
        "26_GELU_.py",
        True,
        0.5,
    )
    (references / "26_GELU_.py").unlink()
    with pytest.raises(FileNotFoundError, match="GeluCustom"):
        operators(tmp_path)


REFERENCE = """
import torch

batch_size = 64

class Model(torch.nn.Module):
    def __init__(self, width, slope):
        super().__init__()
        self.fc, self.slope = torch.nn.Linear(width, 3), slope

    def forward(self, x):
        scores = self.fc(x)
        return torch.nn.functional.leaky_relu(scores, self.slope)

def get_inputs():
    return [torch.randn(batch_size, 4)]

def get_init_inputs():
    return [4, 0.25]
"""
LINEAR = """
at::Tensor f(const at::Tensor& x, const at::Tensor& weight_t, const at::Tensor& bias, double negative_slope)
{
    TORCH_CHECK(x.scalar_type() == at::kHalf && bias.scalar_type() == at::kHalf, "half");
    TORCH_CHECK(weight_t.size(0) == x.size(1), "transposed");
    auto y = at::empty({x.size(0), bias.numel()}, x.options());
    EXEC_NPU_CMD(aclnnF, x, weight_t, bias, negative_slope, y);
    return y;
}
TORCH_LIBRARY_IMPL(myops, PrivateUse1, m) { m.impl("f", &f); }
"""


def test_arguments_are_values_of_the_reference_that_the_binding_takes(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from evokernel_reference import Reference, bound, smaller_sizes

    path = tmp_path / "1_F.py"
    path.write_text(REFERENCE, encoding="utf-8")
    assert smaller_sizes(path, 0.1) == {"batch_size": 4}
    reference = Reference(path, {"batch_size": 6})
    arguments, alike = bound(read_binding(LINEAR), reference.known())
    x, weight, bias, slope, y = arguments
    assert torch.equal(x.torch, reference.inputs[0].half())
    assert torch.equal(weight.torch, reference.model.fc.weight.t().half())
    assert torch.equal(bias.torch, reference.model.fc.bias.half())
    assert (slope, y.empty, list(y.torch.shape), alike > 0) == (0.25, True, [6, 3], True)
    computed, (returned,) = reference.tensors_of({18}, training=False)
    assert torch.equal(returned, reference.model(*reference.inputs))
    assert any(torch.equal(one, reference.model.fc(*reference.inputs)) for one in computed)
