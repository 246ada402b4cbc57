"""Domains: the values that an operator has to be right for, and the case that is drawn from them.

An operator declares its domain in ``op.toml``: for each input a range and kinds of special rows, such as
rows of equal elements or with one huge one. The domain case has the shapes, types and attributes of the
operator's smallest case, so that nothing else has to be built for it, and is drawn, computed and judged like
any other. It has no price. Without a declaration, the domain is the ranges of the smallest case.
"""

from __future__ import annotations

from collections.abc import Sequence

from ascend_gym.core.records import Case, Domain, DomainInput, OpSpec, TensorSpec
from ascend_gym.suite.value_checks import check_values

CASE_SUFFIX = "~domain"


def smallest_case(cases: Sequence[Case]) -> Case:
    """Return the case that moves the fewest bytes, the first of several."""
    return min(cases, key=lambda case: case.traffic_bytes)


def domain_case(spec: OpSpec, case: Case) -> Case:
    """Return ``case`` with values of the operator's domain.

    Args:
        spec: operator.
        case: one of its cases; the smallest one, unless there is a reason.

    Raises:
        ValueError: an input cannot be filled as the domain says.
    """
    domain = spec.domain or Domain()
    inputs = tuple(_domain_input(domain, case, tensor) for tensor in case.inputs)
    update = {
        "case_id": case.case_id + CASE_SUFFIX,
        "inputs": inputs,
        "tolerance": {**case.tolerance, **domain.tolerance},
    }
    return case.model_copy(update=update)


def check_domain(domain: Domain, cases: Sequence[Case]) -> None:
    """Return if every case can be filled with values of ``domain``.

    Raises:
        ValueError: it cannot, or the domain speaks of an input that no case has.
    """
    tensors = [tensor for case in cases for tensor in case.inputs]
    for said in domain.input:
        if not any(_concerns(said, tensor) for tensor in tensors):
            of_type = f" of type {said.dtype.value}" if said.dtype else ""
            raise ValueError(f"domain: no case has an input {said.name!r}{of_type}")
    for case in cases:
        for tensor in case.inputs:
            _domain_input(domain, case, tensor)


def _concerns(said: DomainInput, tensor: TensorSpec) -> bool:
    return said.name == tensor.name and said.dtype in (None, tensor.dtype)


def _domain_input(domain: Domain, case: Case, tensor: TensorSpec) -> TensorSpec:
    said = [each for each in domain.input if _concerns(each, tensor)]
    if not said or tensor.optional_absent:
        return tensor
    what = f"domain: input {tensor.name!r} of case {case.case_id!r}"
    if len(said) > 1:
        raise ValueError(f"{what}: {len(said)} entries speak of it; give each its 'dtype'")
    groups = said[0].groups
    if isinstance(groups, str):
        given = case.attributes.get(groups)
        if not isinstance(given, int) or given < 1:
            raise ValueError(f"{what}: 'groups' names {groups!r}, which is no whole attribute of the case")
        groups = given
    base = said[0].values or tensor.values
    values = base.model_copy(update={"rows": said[0].rows, "axes": said[0].axes, "groups": groups})
    try:
        check_values(values, tensor.dtype, tensor.shapes)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    return tensor.model_copy(update={"values": values})
