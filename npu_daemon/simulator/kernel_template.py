"""Kernels that are templates: what calls the instance of a tiling key (ASCENDC_TPL_SEL).

Headers of the kernel declare its parameters, their values and the combinations, from which
``asim/api/tiling_template.h`` makes constant expressions. What is read of the text here is only the list of
template parameters in front of the entry: which of them are types.
"""

from __future__ import annotations

import re

from ascend_gym.core.cpp_text import without_comments
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Phase, Sources
from ascend_gym.core.status import Status

_HEADER = re.compile(r"template\s*<([^;{}]*)>\s*(?:inline\s+|static\s+)*")
_MAX_HEADER = 4000  # characters of a list of template parameters
_TYPE = re.compile(r"\s*(?:typename|class)\b")
_DECLARED = re.compile(r"\bASCENDC_TPL_ARGS_DECL\s*\(")
_SELECTED = re.compile(r"\bASCENDC_TPL_SEL\s*\(")
_STRUCTURE = re.compile(r"\bASCENDC_TPL_TILING_STRUCT_SEL\s*\(")
_DEFAULT_STRUCTURE = re.compile(r"\bREGISTER_TILING_DEFAULT\s*\(")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*define\b.*$", re.MULTILINE)
_NO_KERNEL = re.compile(r"(tiling key \d+ (?:\(|holds ).*)", re.DOTALL)

_ENTRY_POINTS = """\
extern "C" constexpr const asim::tiling_template::Declaration &asim_tpl_declaration();
extern "C" constexpr asim::tiling_template::Choice asim_tpl_choice(const asim::tiling_template::Ask &);
extern "C" constexpr asim::tiling_template::Text asim_tpl_complaint(const asim::tiling_template::Ask &);
static constexpr asim::tiling_template::Tensors asim_tensors({ asim_input_slots }, { asim_output_slots });
static constexpr asim::tiling_template::Text asim_mismatch =
    asim::tiling_template::mismatch_of(asim_tpl_declaration(), { {types} });
static_assert(asim_mismatch.size() == 0, asim_mismatch);
template <uint64_t asim_key> struct asim_instance {
    static constexpr asim::tiling_template::Choice asim_choice =
        asim_tpl_choice({ asim_tensors, false, asim_key });
    static inline __attribute__((always_inline)) void asim_run(uint8_t *const *arguments, uint32_t count) {
        asim::asim_launch(&{entry}<{arguments}>, arguments, count);
    }
};
{keys}
extern "C" void asim_kernel_entry(uint8_t *const *arguments, uint32_t count) {
    asim::asim_launch_template<asim_instance>(asim_keys{}, arguments, count);
}
extern "C" uint32_t asim_task_type(uint64_t key, uint32_t otherwise) {
    return asim::asim_template_task_type<asim_instance>(asim_keys{}, key,
        asim::asim_noted_task_type(__start_asim_task_types, __stop_asim_task_types, key, otherwise));
}"""
_ONE_KEY = """\
static constexpr asim::tiling_template::Text asim_complaint =
    asim_tpl_complaint({ asim_tensors, false, {key}ull });
static_assert(asim_complaint.size() == 0, asim_complaint);
using asim_keys = std::conditional_t<asim_complaint.size() == 0 && asim_mismatch.size() == 0,
    std::integer_sequence<uint64_t, {key}ull>, std::integer_sequence<uint64_t>>;"""
_ALL_KEYS = """\
struct asim_chooser {
    static constexpr asim::tiling_template::Choice asim_chosen(const asim::tiling_template::Ask &asim_ask) {
        return asim_tpl_choice(asim_ask);
    }
};
using asim_keys = typename asim::asim_all_keys<asim_chooser, asim_tensors>::asim_list;
static_assert(asim_keys::size() != 0, "ASCENDC_TPL_SEL has no combination for the types of this case");"""
_TYPE_ARGUMENT = "typename TypeFromId<static_cast<int>(asim_choice.values[{}])>::type"
_VALUE_ARGUMENT = "asim::tiling_template::literal<asim_choice.values[{}]>()"


def template_parameters(code: str, begin: int) -> tuple[bool, ...] | None:
    """Return of each template parameter of a function whether it is a type.

    Args:
        code: a kernel's text without comments and literals.
        begin: where the function begins in it, behind a template's list.

    Returns:
        ``None`` if the function is no template.
    """
    at = code.rfind("template", max(0, begin - _MAX_HEADER), begin)
    found = _HEADER.fullmatch(code, at, begin) if at >= 0 else None
    if found is None:
        return None
    return tuple(_TYPE.match(each) is not None for each in _separated(found[1])) if found[1].strip() else ()


def _separated(parameters: str) -> list[str]:
    """Return the parts between commas that are in no brackets."""
    parts, depth, begin = [], 0, 0
    for at, sign in enumerate(parameters):
        depth += (sign in "(<[") - (sign in ")>]")
        if sign == "," and depth == 0:
            parts.append(parameters[begin:at])
            begin = at + 1
    return [*parts, parameters[begin:]]


def undeclared(sources: Sources) -> str | None:
    """Return what the files of a kernel that is a template lack, or ``None``."""
    text = "\n".join(_DIRECTIVE.sub("", without_comments(file.text)) for file in sources.files)
    if not (_DECLARED.search(text) and _SELECTED.search(text)):
        return (
            "the kernel is a template, but its parameters are not declared: expected ASCENDC_TPL_ARGS_DECL "
            "and ASCENDC_TPL_SEL in a header that includes ascendc/host_api/tiling/template_argument.h"
        )
    if _STRUCTURE.search(text) and not _DEFAULT_STRUCTURE.search(text):
        return "ASCENDC_TPL_TILING_STRUCT_SEL needs a default structure: expected REGISTER_TILING_DEFAULT"
    return None


def template_entry_points(types: tuple[bool, ...], tiling_key: int | None) -> str:
    """Return the text that defines the entry points of a library of a kernel that is a template.

    Args:
        types: ``template_parameters`` of its entry.
        tiling_key: the only key that the kernel is built for; ``None`` for every combination that it has.

    The name of the entry is left open, as ``{entry}``.
    """
    arguments = ((_TYPE_ARGUMENT if each else _VALUE_ARGUMENT).format(at) for at, each in enumerate(types))
    keys = _ALL_KEYS if tiling_key is None else _ONE_KEY.replace("{key}", str(tiling_key))
    return (
        _ENTRY_POINTS.replace("{types}", ", ".join("true" if each else "false" for each in types))
        .replace("{arguments}", ", ".join(arguments))
        .replace("{keys}", keys)
    )


def without_kernel(failure: Failure) -> Failure:
    """Return why a build failed: that its tiling program chose a key without a kernel is no fault of it."""
    found = _NO_KERNEL.search(failure.diagnostics[0].message)
    if failure.status is not Status.BUILD_ERROR or failure.diagnostics[0].file or found is None:
        return failure
    return Failure.of(Status.TILING_ERROR, Phase.RUN_TILING, found[1], failure.seconds)
