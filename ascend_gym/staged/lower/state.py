"""Pass 2, state: the kernel class with its queues, buffers and global tensors, and their initialisation."""

from __future__ import annotations

from ascend_gym.staged.lower.context import CPP_TYPES, Context, helpers_for, name_of, scalar_type
from ascend_gym.staged.lower.stages import INLINE, Stages

_NOTHING = f"    {INLINE} void Process()\n    {{\n    }}\n"
_POSITIONS = {"in": "VECIN", "out": "VECOUT"}

_LONG_REDUCTION = """\
    // Long tiles are reduced by data blocks first, which is several times as fast.
    __aicore__ inline void Reduce{kind}Long(const Floats& dst, const Floats& src, const Floats& work,
                                         int64_t count)
    {{
        const int64_t repeats = count / 64;
        if (repeats < 4) {{
            AscendC::Reduce{kind}<float>(dst, src, work, static_cast<int32_t>(count));
            return;
        }}
        for (int64_t done = 0; done < repeats; done += 255) {{
            const int32_t part = static_cast<int32_t>(repeats - done < 255 ? repeats - done : 255);
            AscendC::BlockReduce{kind}<float>(work[done * 8], src[done * 64], part, 64, 1, 1, 8);
        }}
        const int64_t rest = count - repeats * 64;
        if (rest > 0) {{
            AscendC::Adds(work[repeats * 8], src[repeats * 64], 0.0f, static_cast<int32_t>(rest));
        }}
        const int64_t left = repeats * 8 + rest;
        AscendC::Reduce{kind}<float>(dst, work, work[AlignUp(left, 8)], static_cast<int32_t>(left));
    }}
"""


_TRANSPOSITIONS = {
    "RowsToLanes": """\
    // Blocks of 16 rows x 8 columns become 8 rows of 16.
    __aicore__ inline void RowsToLanes(const Floats& dst, const Floats& src, int64_t pitch, int64_t rows,
                                       int64_t count)
    {
        const int64_t columns = count / 16;
        uint64_t from[16];
        uint64_t to[16];
        for (int32_t row = 0; row < 16; row++) {
            from[row] = reinterpret_cast<uint64_t>(src[MinOf<int64_t>(row, rows - 1) * pitch].GetPhyAddr());
            to[row] = reinterpret_cast<uint64_t>(dst[row * 8].GetPhyAddr());
        }
        const AscendC::TransDataTo5HDParams shape(false, false, static_cast<uint8_t>(columns / 8), 16, 1);
        AscendC::TransDataTo5HD<float>(to, from, shape);
    }
""",
    "LanesToRows": """\
    // Blocks of 16 columns x 8 lanes become 8 rows of 16, first those of the lower lanes.
    __aicore__ inline void LanesToRows(const Floats& dst, const Floats& src, int64_t step, int64_t count)
    {
        const int64_t columns = count / 16;
        const int64_t repeats = columns / 16;
        const uint16_t dstStride = repeats > 1 ? 2 : 0;
        const uint16_t srcStride = static_cast<uint16_t>(repeats > 1 ? 32 * step : 0);
        uint64_t from[16];
        uint64_t to[16];
        for (int64_t lanes = 0; lanes < 16; lanes += 8) {
            for (int64_t row = 0; row < 16; row++) {
                from[row] = reinterpret_cast<uint64_t>(src[row * step * 16 + lanes].GetPhyAddr());
                const int64_t place = (lanes + row / 2) * columns + row % 2 * 8;
                to[row] = reinterpret_cast<uint64_t>(dst[place].GetPhyAddr());
            }
            const AscendC::TransDataTo5HDParams shape(false, false, static_cast<uint8_t>(repeats), dstStride,
                                                      srcStride);
            AscendC::TransDataTo5HD<float>(to, from, shape);
        }
    }
""",
}


def empty_kernel(context: Context) -> str:
    """Return a kernel that takes its tiling data and does nothing."""
    body = f"{_signature(context)}\n{{\n    GET_TILING_DATA(tilingData, tiling);\n}}\n"
    return f"{_head(context)}{body}"


def kernel_source(context: Context, stages: Stages | None) -> str:
    """Return the kernel source of a program.

    Args:
        context: the program.
        stages: writes ``Process`` and what it calls; without it ``Process`` does nothing.
    """
    name = f"Kernel{context.interface.op_type}"
    process, functions = (stages.process(), stages.functions()) if stages else (_NOTHING, "")
    reductions = [kind for kind in ("Sum", "Max", "Min") if f"Reduce{kind}Long(" in functions]
    helpers = "".join("\n" + _LONG_REDUCTION.format(kind=kind) for kind in reductions)
    helpers += "".join("\n" + text for name, text in _TRANSPOSITIONS.items() if f"{name}(" in functions)
    alias = "    using Floats = AscendC::LocalTensor<float>;\n\n" if helpers else ""
    template = "template <typename T>\n" if context.generic else ""
    body = (
        f"{template}class {name} {{\n{alias}public:\n    __aicore__ inline {name}() {{}}\n\n"
        f"{_init(context)}\n{process}\nprivate:\n{functions}{helpers}\n{_members(context)}}};\n"
    )
    before = f"{_head(context)}{_constants(context)}{helpers_for(body, '__aicore__ inline')}"
    return f"{before}{body}\n{_entry(context, name)}"


def _head(context: Context) -> str:
    origin = "lowered from a program of the staged language"
    return f'// Device side of {context.interface.op_type}, {origin}.\n#include "kernel_operator.h"\n\n'


def _constants(context: Context) -> str:
    depths = sorted(context.verified.depths.items())
    lines = [f"constexpr int32_t {name.upper()}_BUFFERS = {depth};\n" for name, depth in depths]
    return "".join([*lines, "\n"]) if lines else ""


def _init(context: Context) -> str:
    program = context.program
    given = [f"GM_ADDR {each.name}" for each in program.tensors]
    numbers = [(_type(each.dtype), name_of(each.name)) for each in program.scalars]
    numbers += [("int64_t", name) for name in context.parts.values()]
    given += [f"{kind} {name}" for kind, name in numbers] + ["AscendC::TPipe& pipe"]
    lines = [f"this->{name} = {name};" for _, name in numbers]
    for each in program.tensors:
        lines.append(f"{each.name}Gm.SetGlobalBuffer((__gm__ {CPP_TYPES[each.dtype]}*){each.name});")
    for alloc in program.allocs:
        size = f"({context.expression(alloc.elems)}) * sizeof({CPP_TYPES[alloc.dtype]})"
        rounded = f"static_cast<uint32_t>(AlignUp({size}, 32))"
        depth = context.verified.depths.get(alloc.name)
        if depth is None:
            lines.append(f"pipe.InitBuffer({alloc.name}Buf, {rounded});")
        else:
            lines.append(f"pipe.InitBuffer({alloc.name}Queue, {alloc.name.upper()}_BUFFERS, {rounded});")
    inner = "\n".join(f"        {line}" for line in lines)
    return f"    {INLINE} void Init({', '.join(given)})\n    {{\n{inner}\n    }}\n"


def _type(dtype: str) -> str:
    return scalar_type(is_float=dtype == "f32")


def _members(context: Context) -> str:
    program, roles = context.program, context.verified.lifetimes.roles
    lines = []
    for alloc in program.allocs:
        position = _POSITIONS.get(roles[alloc.name])
        if position is None:
            lines.append(f"AscendC::TBuf<AscendC::QuePosition::VECCALC> {alloc.name}Buf;")
        else:
            depth = f"{alloc.name.upper()}_BUFFERS"
            lines.append(f"AscendC::TQue<AscendC::QuePosition::{position}, {depth}> {alloc.name}Queue;")
    held = sorted({each.buffer for each in context.verified.lifetimes.all if not each.local})
    lines += [f"AscendC::LocalTensor<{context.element(name)}> {name}Held;" for name in held]
    lines += [f"AscendC::GlobalTensor<{CPP_TYPES[each.dtype]}> {each.name}Gm;" for each in program.tensors]
    lines += [f"{_type(each.dtype)} {name_of(each.name)};" for each in program.scalars]
    lines += [f"int64_t {name};" for name in context.parts.values()]
    return "".join(f"    {line}\n" for line in lines)


def _entry(context: Context, name: str) -> str:
    program = context.program
    given = [
        "AscendC::GetUserWorkspace(workspace)" if each.role == "work" else each.name
        for each in program.tensors
    ]
    given += [f"tilingData.{name_of(each.name)}" for each in program.scalars]
    given += [f"tilingData.{each}" for each in context.parts.values()] + ["pipe"]
    kind = name
    if context.generic:
        kind += f"<DTYPE_{program.tensors[0].name.upper()}>"
    return (
        f"{_signature(context)}\n{{\n    GET_TILING_DATA(tilingData, tiling);\n"
        f"    AscendC::TPipe pipe;\n    {kind} op;\n    op.Init({', '.join(given)});\n    op.Process();\n}}\n"
    )


def _signature(context: Context) -> str:
    interface = context.interface
    parameters = [f"GM_ADDR {each.name}" for each in (*interface.inputs, *interface.outputs)]
    given = ", ".join([*parameters, "GM_ADDR workspace", "GM_ADDR tiling"])
    return f'extern "C" __global__ __aicore__ void {interface.name}({given})'
