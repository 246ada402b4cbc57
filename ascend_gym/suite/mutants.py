"""Mutants of references: what a kernel computes that leaves out a stabilising step.

Each is made of the Python of ``reference.py``, in single precision as a kernel would compute it, and must be
told apart by the verdict on the domain case. The reference in single precision without another change must
pass, or else the domain asks for more than an honest kernel gives.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ascend_gym.core.records import Case, OpSpec
from ascend_gym.suite.cann_cases import REFERENCE_NAME, case_folder
from ascend_gym.suite.domain import domain_case, smallest_case
from ascend_gym.suite.inputs import Array, numpy_dtype
from ascend_gym.suite.oracle import ReferenceOracle, oracle_for

HONEST = "single precision"
_LANES = 64
_REDUCTIONS = ("sum", "mean", "var", "max", "min", "prod")
_SUMS = ("sum", "mean", "var")


@dataclass(frozen=True)
class MutantVerdict:
    """What the verdict on a domain case said of one mutant.

    Attributes:
        mutant: what it leaves out.
        applies: whether the reference has such a step.
        accepted: whether it passed as correct.
    """

    mutant: str
    applies: bool
    accepted: bool = False


def mutant_verdicts(spec: OpSpec, case: Case, seed: int) -> list[MutantVerdict]:
    """Return what the verdict says of each mutant of an operator's reference, the honest one first.

    Args:
        spec: operator.
        case: its domain case.
        seed: of the inputs.
    """
    folder = case_folder(Path(spec.folder))
    path = folder / REFERENCE_NAME
    if not path.is_file():
        return []
    source = path.read_text("utf-8")
    oracle = oracle_for(spec)
    inputs = oracle.inputs(case, seed)
    expected = oracle.expected(case, inputs)

    def verdict(mutant: str, outputs: list[list[Array]]) -> MutantVerdict:
        return MutantVerdict(mutant, True, oracle.judge(case, outputs, expected).correct)

    verdicts = []
    for mutant, rewrite in _REWRITES.items():
        tree = ast.parse(source)
        tree.body = [each for each in tree.body if getattr(each, "name", "") != "inputs"]
        if not rewrite(tree):
            verdicts.append(MutantVerdict(mutant, applies=False))
            continue
        _Narrowed().visit(tree)
        module = ModuleType(mutant)
        module.__dict__.update(_one_pass=_one_pass, _half_sums=_half_sums, _clipped=_clipped)
        with np.errstate(all="ignore"):
            exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), module.__dict__)
            results = ReferenceOracle(module, folder).expected(case, inputs)
        verdicts.append(verdict(mutant, _cast(case, results, np.rint)))
    quantised = any(
        not tensor.dtype.is_floating and array.dtype.kind == "f" and bool((array != np.rint(array)).any())
        for tensor, arrays in zip(case.outputs, expected, strict=True)
        for array in arrays
    )
    truncated = "truncation instead of rounding"
    if quantised:
        verdicts.append(verdict(truncated, _cast(case, expected, np.trunc)))
    else:
        verdicts.append(MutantVerdict(truncated, applies=False))
    return verdicts


@dataclass(frozen=True)
class DomainAudit:
    """What is known of a domain.

    Attributes:
        complaints: what is wrong with it, one sentence each.
        notes: what a reader should know of it.
    """

    complaints: tuple[str, ...]
    notes: tuple[str, ...]


def audit_domain(spec: OpSpec, seed: int) -> DomainAudit:
    """Return whether the verdict on an operator's domain tells mutants of its reference apart.

    Args:
        spec: operator.
        seed: of the inputs.
    """
    verdicts = mutant_verdicts(spec, domain_case(spec, smallest_case(spec.cases)), seed)
    waived = spec.domain.waived if spec.domain else {}
    complaints, notes = [], []
    for each in verdicts:
        if each.mutant == HONEST and not each.accepted:
            complaints.append("the reference in single precision is rejected: the domain asks for more")
        elif each.mutant == HONEST or not each.applies:
            continue
        elif each.mutant in waived:
            notes.append(f"{each.mutant}: waived, {waived[each.mutant]}")
        elif each.accepted:
            complaints.append(f"the reference with {each.mutant} is accepted as correct")
    unknown = sorted(waived.keys() - {each.mutant for each in verdicts})
    if unknown and verdicts:
        complaints.append(f"waived: there are no mutants {', '.join(unknown)}")
    if spec.domain is None:
        notes.append("no domain is declared: values are drawn from the ranges of the smallest case")
    made = [each.mutant for each in verdicts if each.applies and each.mutant != HONEST]
    notes.append(f"mutants of the reference: {', '.join(made) or 'none can be made'}")
    return DomainAudit(tuple(complaints), tuple(notes))


def _cast(case: Case, results: list[list[Array]], whole: Callable[[Array], Array]) -> list[list[Array]]:
    """Return results in the types of the outputs, zeros where an output is open."""
    with np.errstate(all="ignore"):
        return [
            [np.zeros(shape, numpy_dtype(tensor.dtype)) for shape in tensor.shapes]
            if tensor.open
            else [
                (whole(each) if each.dtype.kind == "f" and not tensor.dtype.is_floating else each).astype(
                    numpy_dtype(tensor.dtype)
                )
                for each in arrays
            ]
            for tensor, arrays in zip(case.outputs, results, strict=True)
        ]


class _Narrowed(ast.NodeTransformer):
    """Computes in single precision."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return (
            ast.copy_location(ast.Attribute(node.value, "float32", node.ctx), node)
            if (node.attr == "float64")
            else node
        )


class _Calls(ast.NodeTransformer):
    """Replaces reductions: ``x.sum(axis=...)`` and ``np.sum(x, axis=...)``.

    Args:
        names: of the reductions.
        replace: given the name, the array and the call as it is with the array first: what stands there
            instead; ``None`` leaves it.
    """

    def __init__(self, names: tuple[str, ...], replace: Callable[[str, ast.expr, ast.Call], ast.expr | None]):
        self._names, self._replace = names, replace
        self.count = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in self._names:
            return node
        of_numpy = isinstance(function.value, ast.Name) and function.value.id == "np"
        if of_numpy and not node.args:
            return node
        array = node.args[0] if of_numpy else function.value
        rest = node.args[1:] if of_numpy else node.args
        found = self._replace(function.attr, array, ast.Call(function, [array, *rest], node.keywords))
        if found is None:
            return node
        self.count += 1
        return ast.copy_location(found, node)


def _named(name: str, call: ast.Call, *first: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [*first, *call.args], call.keywords)


def _without_maximum(tree: ast.Module) -> bool:
    text = ast.unparse(tree)
    calls = _Calls(("max", "amax"), lambda _, array, call: _zeros_like(call))
    if "np.exp(" in text:
        calls.visit(tree)
    return calls.count > 0


def _zeros_like(call: ast.Call) -> ast.Call:
    numpy = ast.Name("np", ast.Load())
    largest = ast.Call(ast.Attribute(numpy, "max", ast.Load()), call.args, call.keywords)
    return ast.Call(ast.Attribute(numpy, "zeros_like", ast.Load()), [largest], [])


def _with_one_pass_variance(tree: ast.Module) -> bool:
    def replaced(name: str, array: ast.expr, call: ast.Call) -> ast.expr | None:
        if name == "var":
            return _named("_one_pass", call)
        if not (isinstance(array, ast.BinOp) and isinstance(array.op, ast.Pow | ast.Mult)):
            return None
        spread = array.left
        if not (isinstance(spread, ast.BinOp) and isinstance(spread.op, ast.Sub)):
            return None
        if "mean" not in ast.unparse(spread.right):
            return None
        return _named("_one_pass", ast.Call(call.func, [spread.left, *call.args[1:]], call.keywords))

    calls = _Calls(("var", "mean"), replaced)
    calls.visit(tree)
    return calls.count > 0


def _with_half_sums(tree: ast.Module) -> bool:
    def replaced(name: str, array: ast.expr, call: ast.Call) -> ast.expr:
        return _named("_half_sums", call, ast.Constant(name))

    calls = _Calls(_SUMS, replaced)
    calls.visit(tree)
    return calls.count > 0


def _without_last(tree: ast.Module) -> bool:
    def replaced(name: str, array: ast.expr, call: ast.Call) -> ast.expr:
        return _named("_clipped", call, ast.Constant(name))

    calls = _Calls(_REDUCTIONS, replaced)
    calls.visit(tree)
    return calls.count > 0


def _without_epsilon(tree: ast.Module) -> bool:
    class Zero(ast.NodeTransformer):
        count = 0

        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            key = node.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and "eps" in key.value:
                self.count += 1
                return ast.copy_location(ast.Constant(0.0), node)
            self.generic_visit(node)
            return node

    zero = Zero()
    zero.visit(tree)
    return zero.count > 0


_REWRITES: dict[str, Callable[[ast.Module], bool]] = {
    HONEST: lambda tree: True,
    "no maximum subtracted": _without_maximum,
    "one-pass variance": _with_one_pass_variance,
    "sums in half precision": _with_half_sums,
    "reductions without their last element": _without_last,
    "no epsilon": _without_epsilon,
}


def _one_pass(x: Array, axis: Any = None, **options: Any) -> Any:
    """Return the mean of squares less the square of the mean."""
    return (x * x).mean(axis=axis, **options) - x.mean(axis=axis, **options) ** 2


def _half_sums(name: str, x: Array, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
    """Return a sum, mean or variance in half precision, added up in lanes as a vector unit does."""
    half = np.asarray(x).astype(np.float16)
    axes = tuple(range(half.ndim)) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    axes = tuple(each % half.ndim for each in axes)
    if name == "var":
        mean = _half_sums("mean", half, axes, keepdims=True).astype(np.float16)
        return _half_sums("mean", (half - mean) ** 2, axes, keepdims).astype(x.dtype)
    kept = [each for each in range(half.ndim) if each not in axes]
    rows = half.transpose(*kept, *axes).reshape(*(half.shape[each] for each in kept), -1)
    count = rows.shape[-1]
    rows = np.pad(rows, [(0, 0)] * len(kept) + [(0, -count % _LANES)])
    rows = rows.reshape(*rows.shape[:-1], -1, _LANES)
    total = rows[..., 0, :].copy()
    for number in range(1, rows.shape[-2]):
        total += rows[..., number, :]
    result = total.sum(axis=-1, dtype=np.float16)
    if name == "mean":
        result = result / np.float16(min(count, 65504))
    if keepdims:
        result = result.reshape([1 if each in axes else half.shape[each] for each in range(half.ndim)])
    return result.astype(x.dtype if x.dtype.kind == "f" else np.float32)


def _clipped(name: str, x: Array, axis: Any = None, **options: Any) -> Any:
    """Return a reduction that stops one element early along the last of its axes."""
    last = (axis[-1] if isinstance(axis, tuple) else axis) if axis is not None else -1
    shorter = x.take(np.arange(x.shape[last] - 1), axis=last) if x.shape[last] > 1 else x
    return getattr(shorter, name)(axis=axis, **options)
