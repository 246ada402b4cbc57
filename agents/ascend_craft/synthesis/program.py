"""Writes the program of a graph: sections, and the meetings of all cores between them.

Names in it that a tensor of the specification has as well are then replaced by free ones.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from agents.ascend_craft.synthesis.graph import Graph, NotCoveredError, descendants
from agents.ascend_craft.synthesis.instructions import StageWriter
from agents.ascend_craft.synthesis.places import Place, ScalarPlace
from agents.ascend_craft.synthesis.section_writer import SectionWriter
from agents.ascend_craft.synthesis.sections import Root, phases_of
from agents.ascend_craft.synthesis.writer import CORE_LIMIT, Tensors, Writer, shorter, tile_of

_MOST_ROWS = 1 << 22
_PARTIAL = 8  # elements between the parts of two cores: a block of 32 bytes
_TENSOR_PLACE = {"load": 1, "store": 0, "size": 0, "dim": 0}
"""Which argument of a call is a tensor."""
_TENSOR_TYPES = frozenset({"gm", "out", "work"})


def program_of(graph: Graph, tensors: Tensors) -> str:
    """Return the text of a program that computes a graph.

    Raises:
        NotCoveredError: the rules do not cover it.
    """
    writer = Writer()
    if any(node.op == "pool" for node in descendants(list(graph.outputs.values()))):
        raise NotCoveredError("windows of something computed, or computations on what they give")
    phases = phases_of(graph)
    globals_: dict[int, Place] = {}
    cores: list[str] = []
    parts, whole_units = 0, True
    for sections in phases:
        partial: list[tuple[Root, str]] = []
        for section in sections:
            if section.rows_in_all > _MOST_ROWS:
                raise NotCoveredError(
                    f"{section.rows_in_all} rows to be read one by one, as for large matrix products and "
                    "convolutions: the language has vector instructions alone"
                )
            written = SectionWriter(writer, tensors, section, globals_)
            cores.append(written.write())
            whole_units = whole_units and not written.flat
            partial += written.parts
        if partial:
            _hand_over(writer, partial, parts)
            _gather(writer, partial, parts, globals_)
            parts += len(partial)
    _numbers_out(writer, graph, tensors, globals_)
    return _text(writer, tensors, cores, parts, whole_units)


def _hand_over(writer: Writer, partial: Sequence[tuple[Root, str]], first: int) -> None:
    """Write down this core's parts of reductions over everything, and have all cores meet."""
    put = writer.buffers.declare("part", "8", "f32")
    for number, (root, value) in enumerate(partial, first):
        kind = root.node.extra[0]
        lines = [f"fill({put}, {value}, 8)"]
        if kind == "sum":
            lines = [f"fill({put}, 0.0, 8)", f"write({put}, 0, {value})"]
        writer.stage("compute", lines)
        writer.stage(
            "copyout", [f"store(partials[({number} * cores() + core()) * {_PARTIAL}], {put}, {_PARTIAL})"]
        )
    writer.say("sync_all()")


def _gather(
    writer: Writer, partial: Sequence[tuple[Root, str]], first: int, globals_: dict[int, Place]
) -> None:
    """Combine the parts of all cores."""
    get = writer.buffers.declare("parts", f"{48 * _PARTIAL}", "f32")
    for number, (root, _) in enumerate(partial, first):
        writer.stage(
            "copyin", [f"load({get}, partials[{number} * cores() * {_PARTIAL}], cores() * {_PARTIAL})"]
        )
        kind, name = root.node.extra[0], writer.fresh()
        if kind == "prod":
            body = [
                f"{name} = 1.0",
                "for other in range(0, cores()):",
                f"    {name} = {name} * read({get}, other * {_PARTIAL})",
            ]
        else:
            result = writer.buffers.declare("result", "8", "f32")
            work = writer.buffers.declare("work", "tile // 4 + 128", "f32")
            body = [
                f"reduce_{kind}({result}, {get}, {work}, cores() * {_PARTIAL})",
                f"{name} = read({result}, 0)",
            ]
        writer.stage("compute", body)
        globals_[id(root.node)] = ScalarPlace(name)


def _numbers_out(writer: Writer, graph: Graph, tensors: Tensors, globals_: dict[int, Place]) -> None:
    """Store the outputs that are one number."""
    outputs = {name: node for name, node in graph.outputs.items() if not node.axes}
    if not outputs:
        return
    with writer.block("if core() == 0:"):
        for name, node in outputs.items():
            stage = StageWriter(
                writer.buffers, globals_, lambda n: writer.number(n.extra), writer.fresh, "8", lambda n: False
            )
            needed = [
                each for each in descendants([node], lambda n: id(n) in globals_) if id(each) not in globals_
            ]
            if any(each.op == "input" for each in needed):
                raise NotCoveredError("an output of one number that is made of inputs without a reduction")
            stage.compute(needed, [node], {})
            place = stage.place(node)
            assert isinstance(place, ScalarPlace)
            put = writer.buffers.declare(f"{name}_one", "8", tensors.dtypes[name])
            writer.stage("compute", [*stage.lines, f"fill({put}, {place.text}, 8)"])
            writer.stage("copyout", [f"store({name}[0], {put}, 1)"])


def _text(writer: Writer, tensors: Tensors, cores: Sequence[str], parts: int, whole_units: bool) -> str:
    """Put the program together: the host with its tile, the kernel with its buffers."""
    sizes = writer.buffers.sizes
    tile = tile_of(sizes)
    attributes = ", ".join(
        f"{name}: {dtype}" for name, dtype in tensors.attributes.items() if _mentions(writer, name)
    )
    host = [f"def host({attributes}):"]
    widest = writer.host.pop("widest", None)
    if any(name.startswith("cut_rows_") for name in writer.host):  # a tile holds several rows
        widest = None
    limit = f'knob("tile_limit", {tile}, {shorter(tile)})'
    host += [f"    {name} = {text}" for name, text in writer.host.items() if not name.startswith("cut_")]
    host.append(f"    tile = {limit}" if widest is None else f"    tile = min({limit}, align({widest}, 64))")
    host += [f"    {name} = {text}" for name, text in writer.host.items() if name.startswith("cut_")]
    host += [f"    {name} = {text} * 1.0" for text, name in writer.floats.items()]
    count = cores[0] if len(cores) == 1 else f"max({', '.join(cores)})"
    launched = f"cores=min(min(vec_cores(), {CORE_LIMIT}), {count})"
    if whole_units and len(cores) == 1:  # no more than it takes for the same longest part
        host.append(f"    units = {count}")
        host.append(f"    some = min(min(vec_cores(), {CORE_LIMIT}), units)")
        launched = "cores=ceil_div(units, ceil_div(units, some))"
    if parts:
        launched += f", workspace={parts} * vec_cores() * {_PARTIAL}"
    host.append(f"    launch({launched})")
    given = [f"{each.name}: gm[{tensors.dtypes[each.name]}]" for each in tensors.inputs]
    given += [f"{each.name}: out[{tensors.dtypes[each.name]}]" for each in tensors.outputs]
    given += ["partials: work[f32]"] if parts else []
    given += [f"{name}: i32" for name in (*writer.wholes, "tile")]
    given += [f"{name}: f32" for name in writer.floats.values()]
    allocs = [f"    {name} = alloc_ub({size}, {dtype})" for name, (size, dtype) in sizes.items()]
    return "\n".join([*host, "", "", f"def kernel({', '.join(given)}):", *allocs, *writer.lines, ""])


def _mentions(writer: Writer, name: str) -> bool:
    texts = [*writer.host.values(), *writer.floats]
    return any(re.search(rf"\b{name}\b", text) for text in texts)


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
