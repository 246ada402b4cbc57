"""Loop iterations: unrolling, and prefetching the next iteration's copies; and the inverse rewrites."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from ascend_gym.rewrites.buffers import class_around, depths_of, queue_depths
from ascend_gym.rewrites.constants import constants_of
from ascend_gym.rewrites.loop_headers import (
    CountingLoop,
    changed_names,
    counting_loops,
    jumps,
    names_in,
    with_index,
)
from ascend_gym.rewrites.rule import (
    Choice,
    Effect,
    Family,
    File,
    FileEdit,
    Pipe,
    Rule,
    Side,
    Site,
    View,
    rule,
)
from ascend_gym.rewrites.statements import BARRIERS, INSTRUCTIONS
from ascend_gym.rewrites.syntax import Edit, Source, is_inside, siblings_before, statements_of

_MAX_UNROLLED = 4
_INNER_LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
_SCALAR_CALLS = ("GetValue", "SetValue")
_COPY_IN = re.compile(r"(?:Copy|Data|Load)_?In\w*", re.IGNORECASE)
_UNROLLED = re.compile(
    r"\{\s*(?P<type>\w[\w:]*) (?P<index>\w+) = (?P<start>[^;]+);\s*"
    r"for \(; (?P=index) \+ 1 < (?P<bound>[^;]+); (?P=index) \+= 2\)"
)


@rule(
    Family.PIPELINING,
    Side.KERNEL,
    Effect((Pipe.SCALAR,), "half as many branches of the scalar unit"),
    inverse="rerolling",
)
def loop_unrolling(view: View) -> Iterator[Site]:
    """A short innermost for loop steps by one over elements that the scalar unit reads or sets.

    Its bound must not change inside, so it may only contain instructions, casts and element accesses.
    """
    for file in view.kernel:
        for loop in counting_loops(file):
            if loop.step == "1" and _is_scalar_loop(loop):
                edit = file.replaced(loop.node, _unrolled(loop))
                yield Site(loop.label(), (Choice("two passes at a time", (edit,)),))


@rule(Family.PIPELINING, Side.KERNEL, Effect((Pipe.SCALAR,), "half as many branches of the scalar unit"))
def rerolling(view: View) -> Iterator[Site]:
    """A block has a loop over pairs of iterations and one for the rest. Undoes ``loop_unrolling``."""
    for file in view.kernel:
        for block in file.source.nodes("compound_statement"):
            match = _UNROLLED.match(file.source.text_of(block))
            steps = statements_of(block)
            if match is None or len(steps) != 3 or steps[2].type != "for_statement":
                continue
            body = steps[2].child_by_field_name("body")
            if body is not None:
                header = "for ({type} {index} = {start}; {index} < {bound}; {index}++)".format(
                    **match.groupdict()
                )
                text = f"{header} {_indented(file.source.text_of(body), -4)}"
                edit = file.replaced(block, text)
                label = file.label(block.start_byte, header)
                yield Site(label, (Choice("one pass at a time", (edit,), forward=False),))


@rule(
    Family.PIPELINING,
    Side.KERNEL,
    Effect((Pipe.MTE2, Pipe.SCALAR), "the next tile is on its way while this one is computed"),
    inverse="prefetch_removal",
)
def prefetch(view: View) -> Iterator[Site]:
    """The body of a for loop begins with a function that copies a tile in, and then processes it.

    No function called in the loop may assign to a member, and each queue that the copies fill must have at
    least two buffers, given by a literal or a constant. Queues with the literal depth 1 get depth 2; other
    depths have to be at least 2, and known.
    """
    for file in view.kernel:
        for loop in counting_loops(file):
            ahead = _ahead(view, loop)
            queues = _filled_queues(view, loop, ahead) if ahead else set()
            deepened = _deepened(view, queues) if queues and _have_two_buffers(view, queues) else None
            if deepened is not None:
                yield _prefetched(loop, ahead, deepened)


@rule(Family.PIPELINING, Side.KERNEL, Effect((Pipe.MTE2, Pipe.SCALAR), "copies in overlap with work"))
def prefetch_removal(view: View) -> Iterator[Site]:
    """A loop copies the next tile in under a condition. Undoes ``prefetch``."""
    for file in view.kernel:
        for loop in counting_loops(file):
            steps = [step for step in loop.steps if step.type != "declaration"]
            before = siblings_before(loop.node)
            if steps and before and before[-1].type == steps[0].type == "if_statement":
                restored = _not_ahead(loop, steps[0], before[-1])
                if restored is not None:
                    yield restored


RULES: tuple[Rule, ...] = (loop_unrolling, prefetch)
REWINDS: tuple[Rule, ...] = (rerolling, prefetch_removal)


def _is_scalar_loop(loop: CountingLoop) -> bool:
    source = loop.file.source
    inner = any(is_inside(node, loop.body) for kind in _INNER_LOOPS for node in source.nodes(kind))
    calls = source.calls_within(loop.body)
    scalar = any(call.name in _SCALAR_CALLS for call in calls)
    known = all(call.name in (*_SCALAR_CALLS, *INSTRUCTIONS) or call.name.endswith("_cast") for call in calls)
    fixed = "(" not in loop.bound_text and not names_in(loop.bound_text) & changed_names(source, loop.body)
    short = 0 < len(loop.steps) <= _MAX_UNROLLED
    return short and scalar and known and fixed and not inner and not jumps(source, loop.body)


def _indented(text: str, columns: int) -> str:
    """Return code with all lines after the first indented by ``columns``, which may be negative."""
    if columns >= 0:
        return text.replace("\n", "\n" + " " * columns)
    return text.replace("\n" + " " * -columns, "\n")


def _unrolled(loop: CountingLoop) -> str:
    source, index = loop.file.source, loop.index
    indent = source.indent_of(loop.node)
    body, bound = source.text_of(loop.body), loop.bound_text
    inner = _indented(body, 8)
    return f"\n{indent}".join(
        (
            "{",
            f"    {loop.type_text} {index} = {loop.start};",
            f"    for (; {index} + 1 < {bound}; {index} += 2) {{",
            f"        {inner}",
            f"        {with_index(inner, index, f'({index} + 1)')}",
            "    }",
            f"    for (; {index} < {bound}; {index}++) {_indented(body, 4)}",
            "}",
        )
    )


def _ahead(view: View, loop: CountingLoop) -> list[Node]:
    """Return the declarations and copies that can run an iteration ahead; empty if they cannot."""
    source = loop.file.source
    ahead: list[Node] = []
    rest = list(loop.steps)
    while rest and rest[0].type == "declaration":
        ahead.append(rest.pop(0))
    copies = 0
    while rest and _copies_in(source, rest[0]):
        ahead.append(rest.pop(0))
        copies += 1
    used = names_in(" ".join(source.text_of(node) for node in ahead))
    plain = all(step.type == "expression_statement" for step in rest)
    if not copies or not rest or not plain or loop.index not in used or jumps(source, loop.body):
        return []
    called = {call.name for call in source.calls_within(loop.body)}
    return ahead if all(_keeps_members(view, name) for name in called) else []


def _copies_in(source: Source, statement: Node) -> bool:
    call = source.call_of(statement)
    return call is not None and not call.is_method and _COPY_IN.fullmatch(call.name) is not None


def _filled_queues(view: View, loop: CountingLoop, ahead: list[Node]) -> set[tuple[str, str]]:
    """Return the queues that the functions called in ``ahead`` allocate from, with the functions' class."""
    calls = [loop.file.source.call_of(node) for node in ahead]
    functions = [found for call in calls if call is not None for found in _functions(view, call.name)]
    return {
        (
            class_around(file.source, function),
            call.callee.removesuffix("AllocTensor").rstrip(".->").removeprefix("this->"),
        )
        for file, function in functions
        for call in file.source.calls_within(function)
        if call.name == "AllocTensor"
    }


def _have_two_buffers(view: View, queues: set[tuple[str, str]]) -> bool:
    counts = _buffer_counts(view)
    return all(min(counts.get(queue, [0])) >= 2 for _, queue in queues)


def _deepened(view: View, queues: set[tuple[str, str]]) -> list[FileEdit] | None:
    """Return the edits that let queues of depth 1 hold a tile more; ``None`` where a depth is not known."""
    declared, known = queue_depths(view.kernel), _known_constants(view)
    edits = []
    for depth in dict.fromkeys(each for owner, queue in queues for each in depths_of(declared, owner, queue)):
        if depth.text == "1":
            edits.append(depth.file.replaced(depth.node, "2"))
        elif _number(depth.text, known) < 2:
            return None
    return edits


def _known_constants(view: View) -> dict[str, int]:
    return {
        constant.name: constant.literal or 0
        for file in view.kernel
        for constant in constants_of(file)
        if constant.is_fixed
    }


def _number(text: str, known: Mapping[str, int]) -> int:
    """Return the value of a literal or a constant; 0 for others."""
    return int(text) if text.isdecimal() else known.get(text, 0)


def _buffer_counts(view: View) -> dict[str, list[int]]:
    """Return the numbers of buffers of each queue; 0 for unknown ones."""
    known = _known_constants(view)
    counts: dict[str, list[int]] = defaultdict(list)
    for file in view.kernel:
        for call in file.source.calls:
            if call.name == "InitBuffer" and len(call.values) == 3:
                count = _number(call.values[1], known)
                counts[call.values[0].removeprefix("this->")].append(count)
    return counts


def _keeps_members(view: View, name: str) -> bool:
    """Return whether every kernel function of a name only assigns to its own variables."""
    if name in INSTRUCTIONS | BARRIERS or name.endswith("_cast"):
        return True
    functions = _functions(view, name)
    return bool(functions) and all(_assigns_own_only(file, node) for file, node in functions)


def _functions(view: View, name: str) -> list[tuple[File, Node]]:
    """Return the definitions of a name in the kernel."""
    return [
        (file, node)
        for file in view.kernel
        for node in file.source.nodes("function_definition")
        if _function_name(file, node) == name
    ]


def _function_name(file: File, function: Node) -> str:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    return file.source.text_of(name).rpartition("::")[2] if name is not None else ""


def _assigns_own_only(file: File, function: Node) -> bool:
    source = file.source
    declared = {
        source.text_of(node)
        for declaration in (*source.nodes("declaration"), *source.nodes("parameter_declaration"))
        if is_inside(declaration, function)
        for node in _named_by(declaration)
    }
    targets = [
        node.child_by_field_name(field)
        for kind, field in (("assignment_expression", "left"), ("update_expression", "argument"))
        for node in source.nodes(kind)
        if is_inside(node, function)
    ]
    assigned = {re.split(r"[.\[]|->", source.bare(target))[0] for target in targets if target is not None}
    return assigned <= declared


def _named_by(declaration: Node) -> Iterator[Node]:
    for declarator in declaration.children_by_field_name("declarator"):
        inner = declarator
        while inner.type != "identifier" and inner.child_by_field_name("declarator") is not None:
            following = inner.child_by_field_name("declarator")
            inner = following if following is not None else inner
        yield inner


def _prefetched(loop: CountingLoop, ahead: list[Node], deepened: list[FileEdit]) -> Site:
    source, index = loop.file.source, loop.index
    copies = [node for node in ahead if node.type != "declaration"]
    following = f"({index} + {loop.step})"
    bound = loop.bound_text
    edits = [
        source.insertion_before(loop.node, *_guarded(source, ahead, index, loop.start, bound)),
        *(source.removal(node) for node in copies[1:]),
    ]
    indent = source.indent_of(copies[0])
    text = f"\n{indent}".join(_guarded(source, ahead, index, following, bound))
    edits.append(Edit(copies[0].start_byte, copies[0].end_byte, text))
    changes = (*deepened, *(loop.file.edit(edit) for edit in edits))
    choice = Choice("copy the next tile in first", changes)
    return Site(loop.label(), (choice,))


def _guarded(source: Source, ahead: list[Node], index: str, value: str, bound: str) -> list[str]:
    """Return the lines that execute statements for one value of the index, if it is below the bound.

    Args:
        source: parsed file.
        ahead: statements.
        index: name of the index.
        value: its value.
        bound: exclusive upper bound.
    """
    lines = [with_index(source.text_of(node), index, value) for node in ahead]
    return [f"if ({value} < {bound}) {{", *(f"    {line}" for line in lines), "}"]


def _not_ahead(loop: CountingLoop, inside: Node, before: Node) -> Site | None:
    """Return the site that undoes a prefetch; ``None`` if the two conditions do not match."""
    source, index = loop.file.source, loop.index
    consequence = inside.child_by_field_name("consequence")
    if consequence is None or consequence.type != "compound_statement":
        return None
    following = f"({index} + {loop.step})"
    copies = [node for node in statements_of(consequence) if node.type != "declaration"]
    plain = [source.text_of(node).replace(following, index) for node in copies]
    conditions = [f"if ({value} < {loop.bound_text})" for value in (following, loop.start)]
    first = [with_index(text, index, loop.start) for text in plain]
    starts = [
        source.text_of(node).startswith(text) for node, text in zip((inside, before), conditions, strict=True)
    ]
    if not all(starts) or not all(text in source.text_of(before) for text in first):
        return None
    text = f"\n{source.indent_of(inside)}".join(plain)
    edits = (
        Edit(before.start_byte, loop.node.start_byte, ""),
        Edit(inside.start_byte, inside.end_byte, text),
    )
    choice = Choice("copy in when needed", tuple(loop.file.edit(edit) for edit in edits), forward=False)
    return Site(loop.label(), (choice,))
