"""Free names for what the rules call as the specification calls a tensor."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

_TENSOR_PLACE = {"load": 1, "store": 0, "size": 0, "dim": 0}
"""Which argument of a call is a tensor."""
_TENSOR_TYPES = frozenset({"gm", "out", "work"})


def with_free_names(text: str, tensors: Collection[str]) -> str:
    """Return a program in which nothing but a tensor has a tensor's name.

    Args:
        text: a program of the rules.
        tensors: names of inputs and outputs.
    """
    tree = ast.parse(text)
    kept = {id(node) for node in _tensor_nodes(tree)}
    own = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.arg)) and id(node) not in kept]
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    clashing = [node for node in own if _name(node) in tensors and id(node) not in called]
    if not clashing:
        return text
    taken = {_name(node) for node in own} | set(tensors)
    free: dict[str, str] = {}
    for name in sorted({_name(node) for node in clashing}):
        free[name] = f"{name}_here"
        while free[name] in taken:
            free[name] += "_"
        taken.add(free[name])
    for node in clashing:
        if isinstance(node, ast.Name):
            node.id = free[node.id]
        else:
            node.arg = free[node.arg]
    return ast.unparse(tree) + "\n"


def _name(node: ast.Name | ast.arg) -> str:
    return node.id if isinstance(node, ast.Name) else node.arg


def _tensor_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that name tensors: parameters, what is copied, what is measured."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and isinstance(node.annotation, ast.Subscript):
            kind = node.annotation.value
            if isinstance(kind, ast.Name) and kind.id in _TENSOR_TYPES:
                yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TENSOR_PLACE:
            place = node.args[_TENSOR_PLACE[node.func.id]]
            yield place.value if isinstance(place, ast.Subscript) else place
