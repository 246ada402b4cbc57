"""Rules about the number of cores that share the work, and the minimum work of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from ascend_gym.rewrites.constants import Constant, constants_of, names_core_count, replacement
from ascend_gym.rewrites.core_parts import has_part_of_core
from ascend_gym.rewrites.core_units import CORE_NAME, FEWER_LAUNCHES, least_core_work
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.syntax import Call, Edit, Source, ancestor

_CORE_COUNTS = (20, 24, 40, 48)  # cube and vector cores of the 910B family
_FEW_CORES = "8"
_MOST_BLOCKS = 96  # two for each vector core
_CORE_CALLS = ("SetBlockDim", "SetNumBlocks")
PLATFORM_CALLS = ("GetCoreNum", "GetCoreNumAiv")
_PLATFORM_HEADER = "tiling/platform/platform_ascendc.h"
_ABOUT_LAUNCH = re.compile(r"SetBlockDim|SetNumBlocks|workspace", re.IGNORECASE)
_ONE = re.compile(r"1[uUlL]*")
_HOLDERS = ("init_declarator", "assignment_expression", "field_initializer", "return_statement")
_SHARES = (2, 4, 8)
_LIMIT_FACTORS = (8, 64)

_MORE_CORES = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR, Pipe.SCALAR), "work spread over the cores that the chip has"
)

_ELEMENTS = (8192, 2048, 32768)  # of the first input, for each core
_HEADER = "<algorithm>"
_LIMIT = "static_cast<uint32_t>(std::min<int64_t>("
_VALUES = (
    "init_declarator",
    "assignment_expression",
    "argument_list",
    "return_statement",
    "field_initializer",
)
_LIMITED = re.compile(
    r"(\(\*?\w+->GetInputShape\(0\)->GetStorageShape\(\)\.GetShapeSize\(\) / )(\d+)( \+ 1\))"
)


@rule(Family.TILING, Side.TILING, _MORE_CORES, inverse="block_dim")
def block_dim(view: View) -> Iterator[Site]:
    """The number of cores is an integer literal: a constant with such a name, or the argument of SetBlockDim.

    Assumption: the work of each core is computed from that number, and is no constant of the kernel.
    """
    if has_part_of_core(view):
        return
    for constant in [*_core_counts(view), *_block_dim_literals(view)]:
        present = constant.literal or 0
        counts = sorted(
            {*_CORE_COUNTS, min(present * 2, _MOST_BLOCKS), present // 2} - {0, present},
            key=_by_promise(present),
        )
        choices = (
            replacement([constant], constant.with_literal(count), forward=count > present)
            for count in sorted(counts, key=_by_promise(present))
        )
        yield Site(constant.label, tuple(choices))


@rule(Family.TILING, Side.TILING, _MORE_CORES, inverse="fixed_cores")
def block_dim_from_platform(view: View) -> Iterator[Site]:
    """A const or constexpr number of cores is used in one function, which has the tiling context.

    A local variable of the same name then shadows it, with the number of vector cores of the actual chip. The
    kernel may not fix the work of a core as a constant.
    """
    if has_part_of_core(view):
        return
    for constant in _core_counts(view):
        function = _only_user(constant)
        if constant.is_fixed and constant.type_text and function is not None:
            edits = [_shadowing(constant, function)]
            if _PLATFORM_HEADER.encode() not in constant.file.source.data:
                edits.append(Edit(0, 0, f'#include "{_PLATFORM_HEADER}"\n'))
            file_edits = tuple(constant.file.edit(edit) for edit in edits)
            yield Site(constant.label, (Choice(f"{constant.name}: cores of the platform", file_edits),))


@rule(Family.TILING, Side.TILING, _MORE_CORES)
def fixed_cores(view: View) -> Iterator[Site]:
    """A variable gets the number of cores from the platform, or shadows a constant with it.

    It is replaced by a small number, or the shadowed constant becomes visible again.
    """
    for file in view.host:
        constants = {constant.name for constant in constants_of(file) if names_core_count(constant)}
        for call in file.source.calls:
            if call.is_method and call.name in PLATFORM_CALLS and not call.arguments:
                yield from _fixing(file, call, constants)


@rule(Family.TILING, Side.TILING, FEWER_LAUNCHES, inverse="core_share")
def core_share(view: View) -> Iterator[Site]:
    """A variable gets the number of cores from the platform: ``coreNum = platform.GetCoreNumAiv()``.

    Half of them are taken, and half of these in a further step. Assumption: the work is divided by that
    variable. A step can be taken back, or all of them.
    """
    for file in view.host:
        for call in file.source.calls:
            asks = call.is_method and call.name in PLATFORM_CALLS and not call.arguments
            if asks and not _launches_alone(view, file, call):
                yield from _share_site(file, call)


@rule(Family.TILING, Side.TILING, FEWER_LAUNCHES, inverse="single_core_limit")
def single_core_limit(view: View) -> Iterator[Site]:
    """An if statement sets a number of cores to 1 if one quantity does not exceed another: the limit.

    A higher limit keeps small work, for which further cores do not pay off, on one core. Assumption: a core
    can process more than one tile.
    """
    for file in view.host:
        for branch in file.source.nodes("if_statement"):
            limit = _limit_of(file.source, branch)
            if limit is not None:
                yield _limit_site(file, limit)


def _launches_alone(view: View, file: File, call: Call) -> bool:
    """Return whether a number of cores only decides how many blocks start, and no block asks for it."""
    holder = call.node.parent
    named = holder.child_by_field_name("declarator") if holder is not None else None
    function = ancestor(call.node, "function_definition")
    asked = any("GetBlockNum" in each.source.words for each in view.kernel)
    if named is None or function is None or asked or named.type != "identifier":
        return False
    uses = [
        node
        for node in file.source.identifiers(file.source.text_of(named))
        if call.node.end_byte <= node.start_byte < function.end_byte
    ]
    return bool(uses) and all(_ABOUT_LAUNCH.search(_statement_of(file.source, node)) for node in uses)


def _statement_of(source: Source, node: Node) -> str:
    statement = ancestor(node, "expression_statement")
    return source.text_of(statement) if statement is not None else ""


def _core_counts(view: View) -> Iterator[Constant]:
    for file in view.host:
        yield from (constant for constant in constants_of(file) if names_core_count(constant))


def _by_promise(present: int) -> Callable[[int], tuple[bool, int]]:
    """Sort key for core counts: larger than the present one first, then by distance to all vector cores."""
    return lambda count: (count <= present, abs(count - max(_CORE_COUNTS)))


def _block_dim_literals(view: View) -> Iterator[Constant]:
    for file in view.host:
        for call in file.source.calls:
            if call.name in _CORE_CALLS and len(call.arguments) == 1:
                text = file.source.text_of(call.arguments[0])
                constant = Constant(file, "block_dim", call.arguments[0], text, False, "")
                if names_core_count(constant):
                    yield constant


def _only_user(constant: Constant) -> Node | None:
    """Return the function with all uses of a constant, if there is only one and it has the context."""
    source = constant.file.source
    uses = [
        node
        for node in source.nodes("identifier")
        if source.text_of(node) == constant.name and node.end_byte > constant.value_node.end_byte
    ]
    if any(node.parent is not None and node.parent.type == "init_declarator" for node in uses):
        return None
    functions = {ancestor(node, "function_definition") for node in uses}
    function = functions.pop() if len(functions) == 1 else None
    if function is None or ancestor(constant.value_node, "function_definition") is not None:
        return None
    declarator = function.child_by_field_name("declarator")
    has_context = declarator is not None and "TilingContext*context" in source.bare(declarator)
    return function if has_context and function.child_by_field_name("body") is not None else None


def _shadowing(constant: Constant, function: Node) -> Edit:
    body = function.child_by_field_name("body")
    at = body.start_byte + 1 if body is not None else function.end_byte
    count = "platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv()"
    return Edit(at, at, f"\n    const {constant.type_text} {constant.name} = {count};")


def _fixing(file: File, call: Call, constants: set[str]) -> Iterator[Site]:
    """Yield the site that takes a number of cores from the source text in place of the platform."""
    holder = call.node.parent
    if holder is None or holder.type not in ("init_declarator", "assignment_expression"):
        return
    label = file.label(holder.start_byte, file.source.text_of(holder))
    named = holder.child_by_field_name("declarator")
    if named is not None and file.source.text_of(named) in constants and holder.parent is not None:
        edit, text = file.source.removal(holder.parent), f"the constant {file.source.text_of(named)}"
    else:
        edit, text = Edit(call.node.start_byte, call.node.end_byte, _FEW_CORES), f"{_FEW_CORES} cores"
    yield Site(label, (Choice(text, (file.edit(edit),), forward=False),))


def _share_site(file: File, call: Call) -> Iterator[Site]:
    """Yield the site at a call that is a complete value, except for an optional divisor."""
    parent, text = call.node.parent, file.source.text_of(call.node)
    if parent is None:
        return
    begin, end = call.node.end_byte, parent.end_byte
    if parent.type in _HOLDERS:
        present, end = 1, begin
    elif _divisor(file.source, parent) in map(str, _SHARES):
        present = int(_divisor(file.source, parent))
    else:
        return
    choices = []
    for share in dict.fromkeys((2 * present, 1, present // 2)):
        label, divisor = ("all cores", "") if share == 1 else (f"1/{share} of the cores", f" / {share}")
        if share == 1 < present or share in _SHARES:
            edit = file.edit(Edit(begin, end, divisor))
            choices.append(Choice(label, (edit,), forward=share > present))
    yield Site(file.label(call.node.start_byte, text), tuple(choices))


def _divisor(source: Source, node: Node) -> str:
    """Return the literal divisor of a division that is a complete value; else an empty string."""
    operator, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
    if node.type != "binary_expression" or operator is None or right is None or node.parent is None:
        return ""
    whole = right.type == "number_literal" and node.parent.type in _HOLDERS
    return source.text_of(right) if whole and source.text_of(operator) == "/" else ""


def _limit_of(source: Source, branch: Node) -> Node | None:
    """Return the larger side of the comparison that sets a number of cores to 1."""
    body = branch.child_by_field_name("consequence")
    if body is None or branch.child_by_field_name("alternative") is None:
        return None
    name, _, value = source.bare(body).strip("{};").rpartition("=")
    condition = branch.child_by_field_name("condition")
    comparison = condition.child_by_field_name("value") if condition is not None else None
    if not CORE_NAME.fullmatch(name) or not _ONE.fullmatch(value) or comparison is None:
        return None
    operator = comparison.child_by_field_name("operator")
    if comparison.type != "binary_expression" or operator is None:
        return None
    fields = {">=": "left", ">": "left", "<=": "right", "<": "right"}
    field = fields.get(source.text_of(operator))
    return comparison.child_by_field_name(field) if field else None


def _limit_site(file: File, limit: Node) -> Site:
    text = file.source.text_of(limit)
    base = text if limit.type in ("identifier", "call_expression", "field_expression") else f"({text})"
    texts = [(f"{base} * {factor}", True) for factor in _LIMIT_FACTORS]
    texts.append((f"{base} / {_LIMIT_FACTORS[0]}", False))
    texts += _present_factor(file.source, limit)
    edits = ((new, file.replaced(limit, new), ahead) for new, ahead in texts)
    choices = tuple(Choice(f"{text} -> {new}", (edit,), forward=ahead) for new, edit, ahead in edits)
    return Site(file.label(limit.start_byte, f"one core up to {text}"), choices)


def _present_factor(source: Source, limit: Node) -> list[tuple[str, bool]]:
    """Return the limit without a factor or divisor of ours, and whether that is higher; else empty."""
    left, operator, right = (limit.child_by_field_name(field) for field in ("left", "operator", "right"))
    if left is None or operator is None or right is None or operator.type not in ("*", "/"):
        return []
    if source.text_of(right) not in map(str, _LIMIT_FACTORS):
        return []
    plain = left.named_children[0] if left.type == "parenthesized_expression" else left
    return [(source.text_of(plain), operator.type == "/")]


@rule(Family.TILING, Side.TILING, FEWER_LAUNCHES, inverse="core_work")
def core_work(view: View) -> Iterator[Site]:
    """A value is the platform's number of cores, in a function that has the tiling context.

    The number of cores is limited by the elements of the first input, in thousands. Assumption: the work is
    divided by that value, and grows with the first input. An existing limit can be changed or removed.
    """
    for file in view.host:
        for call in file.source.calls:
            if call.is_method and call.name in PLATFORM_CALLS and not call.arguments:
                site = None if _launches_alone(view, file, call) else _site(file, call)
                if site is not None:
                    yield site


RULES: tuple[Rule, ...] = (
    block_dim,
    block_dim_from_platform,
    core_share,
    single_core_limit,
    least_core_work,
    core_work,
)
REWINDS: tuple[Rule, ...] = (fixed_cores,)


def _site(file: File, call: Call) -> Site | None:
    parent, text = call.node.parent, file.source.text_of(call.node)
    label = file.label(call.node.start_byte, text)
    limit = _limit_around(file, call.node)
    if limit is not None:
        return Site(label, tuple(_moves(file, limit, call.node)))
    context = _context_of(file, call.node)
    if context is None or parent is None or parent.type not in _VALUES:
        return None
    header = [] if _HEADER in file.source.text else [file.edit(Edit(0, 0, f"#include {_HEADER}\n"))]
    choices = []
    for elements in _ELEMENTS:
        size = f"{context}->GetInputShape(0)->GetStorageShape().GetShapeSize()"
        limited = f"{_LIMIT}{text}, ({size} / {elements} + 1)))"
        edit = file.replaced(call.node, limited)
        choices.append(Choice(f"a core for each {elements} elements", (*header, edit)))
    return Site(label, tuple(choices))


def _context_of(file: File, node: Node) -> str | None:
    """Return the pointer to the tiling context from which the enclosing function gets the platform."""
    function = ancestor(node, "function_definition")
    calls = file.source.calls_within(function) if function is not None else []
    named = {
        call.callee.partition("->")[0]
        for call in calls
        if call.name == "GetPlatformInfo" and "->" in call.callee
    }
    asks_shape = any(call.name in ("GetInputShape", "GetInputTensor") for call in calls)
    return named.pop() if len(named) == 1 and asks_shape else None


def _limit_around(file: File, node: Node) -> Node | None:
    """Return the call that limits a number of cores in the form that ``core_work`` writes."""
    smaller = ancestor(node, "call_expression")
    outer = ancestor(smaller, "call_expression") if smaller is not None else None
    text = file.source.text_of(outer) if outer is not None else ""
    return outer if text.startswith(_LIMIT) and _LIMITED.search(text) else None


def _moves(file: File, limit: Node, cores: Node) -> Iterator[Choice]:
    """Yield other limits, larger pieces first, and the inverse: all cores."""
    text = file.source.text_of(limit)
    match = _LIMITED.search(text)
    present = int(match[2]) if match is not None else 0
    for elements in _ELEMENTS:
        if elements != present:
            moved = _LIMITED.sub(rf"\g<1>{elements}\g<3>", text)
            edit = file.replaced(limit, moved)
            yield Choice(f"a core for each {elements} elements", (edit,))
    edit = file.replaced(limit, file.source.text_of(cores))
    yield Choice("all cores", (edit,), forward=False)
