"""Library calls work in the temporary buffers that the host functions ask for."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from composed_machine import RUNTIME as COMPOSED
from host_side_machine import Host, toolchain, toy
from test_library_calls import RUNTIME as LIBRARY
from test_math_library import RUNTIME as MATH
from vector_machine import Array, Machine, build_machine

from npu_daemon.simulator.own_sources import INCLUDE

pytestmark = pytest.mark.slow

__all__ = ["toolchain"]

KB = 1024
A, B, C, D, E, F, TMP = 0, 16 * KB, 32 * KB, 48 * KB, 56 * KB, 60 * KB, 64 * KB
TMP_MOST = 96 * KB
GUARD_BYTES = 4 * KB
RUNTIMES = {
    "math": MATH,
    "composed": COMPOSED,
    "library": LIBRARY,
    "quantization": ["quantization", *LIBRARY],
    "gradients": COMPOSED,
}
COUNT, ROWS, COLUMNS = 1000, 20, 48
BYTES = {"float32": 4, "float16": 2, "int32": 4, "int16": 2, "uint8": 1}
ONE = {"float32": 0x3F800000, "float16": 0x3C00}


@dataclass(frozen=True)
class Trial:
    """A call and how a host asks for its buffer.

    ``sizes`` are statements that set ``most`` and ``least``, ``factor`` those that set a factor of the
    operands' ``factor_of`` bytes and bytes beside that, ``arguments`` those of the driver's call with a place
    for the size of the buffer.
    """

    function: str
    machine: str
    call: str
    sizes: str
    arguments: tuple[int | str, ...]
    factor: str = ""
    factor_of: int = 0

    @property
    def name(self) -> str:
        return f"{self.function} for {self.call}"


def _elementwise() -> Iterator[Trial]:
    names = re.findall(r"^ASIM_MATH_SCRATCH\((\w+),", _headers(), re.MULTILINE)
    without_buffer = {"Log", "Clamp", "Xor", "Axpy"}
    pairs = {"Fmod", "GeGLU", "ReGlu", "SwiGLU"}
    forms = dict.fromkeys(
        [name for name in names if name not in without_buffer], "shape, {}, false, most, least"
    )
    forms |= {"SwiGLU": "shape, {}, most, least, false", "Gelu": "shape, {}, most, least"}
    for name, form in forms.items():
        for dtype in ("float32", "float16"):
            size = BYTES[dtype]
            operands = (A, B, C, TMP, "bytes", COUNT) if name in pairs else (A, B, TMP, "bytes", COUNT)
            yield Trial(
                f"Get{name}MaxMinTmpSize",
                "composed" if name in pairs else "math",
                f"{name} {dtype}",
                f"AscendC::Get{name}MaxMinTmpSize({form.format(size)});",
                operands,
                f"AscendC::Get{name}TmpBufferFactorSize({size}, factor, extra);" if name != "Gelu" else "",
                COUNT * size,
            )


def _headers() -> str:
    return "\n".join(path.read_text() for path in sorted((INCLUDE / "host/tiling").glob("*.h")))


def _math() -> Iterator[Trial]:
    for name in ("Swish", "Silu"):
        for dtype in ("float32", "float16"):
            sizes = f"AscendC::Get{name}TmpSize(shape, {BYTES[dtype]}, false, most, least);"
            yield Trial(f"Get{name}TmpSize", "math", f"{name} {dtype}", sizes, (A, B, TMP, 0, COUNT))
    for dtype in ("float32", "float16"):
        for pair in _pair("Gelu", f"shape, {BYTES[dtype]}"):
            operands: tuple[int | str, ...] = (A, B, TMP, "bytes", COUNT)
            yield Trial(pair.partition("(")[0], "math", f"Gelu {dtype}", _qualified(pair), operands)
    for dtype, size in (("float32", 4), ("float16", 2), ("int32", 4)):
        whole = "true" if dtype == "int32" else "false"
        sizes = f"AscendC::GetPowerMaxMinTmpSize(shape, shape, {whole}, {size}, false, most, least);"
        factor = f"AscendC::GetPowerTmpBufferFactorSize(true, true, {whole}, {size}, factor, extra);"
        operands = (A, B, C, TMP, "bytes", COUNT)
        yield Trial(
            "GetPowerMaxMinTmpSize", "math", f"Power tensor {dtype}", sizes, operands, factor, COUNT * size
        )
    for form, operands in (("exponent", (A, B, ONE["float32"])), ("base", (A, ONE["float32"], B))):
        sizes = "AscendC::GetPowerMaxMinTmpSize(shape, shape, false, 4, false, most, least);"
        call = f"Power scalar {form} float32"
        yield Trial("GetPowerMaxMinTmpSize", "math", call, sizes, (*operands, TMP, "bytes", COUNT))
    for dtype in ("float32", "float16"):
        size = BYTES[dtype]
        for name in ("ClampMax", "ClampMin"):
            sizes = f"AscendC::GetClampMaxMinTmpSize(shape, {size}, false, most, least);"
            yield Trial(
                "GetClampMaxMinTmpSize", "math", f"{name} {dtype}", sizes, (A, B, TMP, "bytes", COUNT)
            )
        sizes = f"AscendC::GetAxpyMaxMinTmpSize(shape, {size}, false, most, least);"
        factor = f"AscendC::GetAxpyTmpBufferFactorSize({size}, factor, extra);"
        operands = (A, B, ONE["float16"], TMP, "bytes", COUNT)
        yield Trial(
            "GetAxpyMaxMinTmpSize", "composed", f"Axpy {dtype}", sizes, operands, factor, COUNT * size
        )
    for name, call in (("Xor", "Xor int16"), ("ReduceXorSum", "ReduceXorSum")):
        sizes = f"AscendC::Get{name}MaxMinTmpSize(shape, 2, false, most, least);"
        factor = f"AscendC::Get{name}TmpBufferFactorSize(2, factor, extra);"
        operands = (A, B, C, TMP, "bytes", COUNT)
        yield Trial(f"Get{name}MaxMinTmpSize", "composed", call, sizes, operands, factor, COUNT * 2)


def _norms(dtype: str) -> Iterator[Trial]:
    size, epsilon = BYTES[dtype], ONE[dtype]
    operands = (A, D, E, B, C, C + 4 * KB)
    rows = (*operands, ROWS, COLUMNS, COLUMNS, "rows", TMP, "bytes", epsilon)
    forms = {
        "LayerNorm": f"GetLayerNormMaxMinTmpSize(cube, {size}, false, most, least)",
        "LayerNorm of rows": f"GetLayerNormMaxMinTmpSize(matrix, {size}, false, true, false, most, least)",
        "DeepNorm": f"GetDeepNormMaxMinTmpSize(cube, {size}, false, false, most, least)",
        "RmsNorm": f"GetRmsNormMaxMinTmpSize(cube, {size}, most, least)",
        "Normalize": f"GetNormalizeMaxMinTmpSize(matrix, {size}, {size}, false, true, false, most, least)",
    }
    for call, sizes in forms.items():
        used = (A, 0, 0, *rows[3:]) if call == "RmsNorm" else rows
        yield Trial(sizes.partition("(")[0], "composed", f"{call} {dtype}", f"AscendC::{sizes};", used)
    groups = (*operands, 2, 4, 2, 16, TMP, "bytes", epsilon)
    sizes = f"AscendC::GetGroupNormMaxMinTmpSize(ge::Shape({{2, 8, 4, 4}}), {size}, false, 4, most, least);"
    yield Trial("GetGroupNormMaxMinTmpSize", "composed", f"GroupNorm {dtype}", sizes, groups)
    shape = f"ge::Shape({{1, {COUNT}}})"
    sizes = f"AscendC::GetWelfordUpdateMaxMinTmpSize({shape}, {size}, 4, false, false, most, least);"
    update = (A, D, C, C + 4 * KB, B, COUNT, TMP, "bytes", ONE["float32"])
    yield Trial("GetWelfordUpdateMaxMinTmpSize", "composed", f"WelfordUpdate {dtype}", sizes, update)


def _rows(dtype: str) -> Iterator[Trial]:
    size = BYTES[dtype]
    for across, way in (("true", "across"), ("false", "down")):
        sizes = f"AscendC::GetCumSumMaxMinTmpSize(matrix, {size}, {across}, false, most, least);"
        operands: tuple[int | str, ...] = (A, D, B, ROWS, COLUMNS, TMP, "bytes")
        yield Trial("GetCumSumMaxMinTmpSize", "composed", f"CumSum {way} {dtype}", sizes, operands)
    sizes = f"AscendC::GetAscendQuantMaxMinTmpSize(shape, {size}, most, least);"
    factor = "AscendC::GetAscendQuantTmpBufferFactorSize(factor, extra);"
    quantised = COUNT // 32 * 32
    scaled = (A, B, TMP, "bytes", ONE["float32"], 0, quantised)
    name = "GetAscendQuantMaxMinTmpSize"
    yield Trial(name, "composed", f"AscendQuant {dtype}", sizes, scaled, factor, quantised * size)
    columns = (A, B, TMP, "bytes", C, C + KB, 32, ROWS * 32)  # scales in whole data blocks of results
    yield Trial(name, "composed", f"AscendQuant columns {dtype}", sizes, columns, factor, COUNT * size)
    masked = (A, B, D, ROWS, COLUMNS, 64, TMP, "bytes")
    for pair in (
        f"GetDropOutMaxMinTmpSize(matrix, {size}, false, most, least);",
        *_pair("DropOut", f"matrix, {size}, false"),
    ):
        yield Trial(pair.partition("(")[0], "composed", f"DropOut {dtype}", _qualified(pair), masked)
    soft = (A, D, E, B, ROWS, COLUMNS, TMP, "bytes")
    for pair in _pair("LogSoftMax", f"matrix, {size}, false"):
        yield Trial(pair.partition("(")[0], "composed", f"LogSoftMax {dtype}", _qualified(pair), soft)
    strided = (*soft[:5], COLUMNS, COLUMNS - 5, TMP, "bytes")
    for pair in _pair("SoftMax", f"matrix, {size}, false"):
        yield Trial(pair.partition("(")[0], "library", f"SoftMax {dtype}", _qualified(pair), strided)
    for columns_of, axis in ((48, "columns"), (47, "columns"), (48, "rows"), (47, "rows")):
        narrow = f"ge::Shape({{{ROWS}, 1}})" if axis == "columns" else f"ge::Shape({{1, {columns_of}}})"
        wide = f"ge::Shape({{{ROWS}, {columns_of}}})"
        sizes = f"AscendC::GetBroadCastMaxMinTmpSize(platform, {narrow}, {wide}, {size}, false, most, least);"
        operands = (A, B, ROWS, columns_of, TMP, "bytes")
        yield Trial("GetBroadCastMaxMinTmpSize", "library", f"BroadCast {axis} {dtype}", sizes, operands)
    for name, types in (("Sum", f"{size}"), ("Mean", f"{size}, {size}")):
        sizes = f"AscendC::Get{name}MaxMinTmpSize({COUNT}, {types}, false, most, least);"
        operands = (A, B, 3, 1008, COUNT, TMP, "bytes")
        yield Trial(f"Get{name}MaxMinTmpSize", "library", f"{name} {dtype}", sizes, operands)
    for name in ("Select", "SelectWithBytesMask"):
        shapes = f"matrix, ge::Shape({{1}}), {size}, matrix, 1, false"
        for pair in (f"Get{name}MaxMinTmpSize({shapes}, most, least);", *_pair(name, shapes)):
            operands = (A, B, ONE[dtype], D, ROWS, COLUMNS, 64, TMP, "bytes")
            call = f"SelectWithBytesMask tensor first {dtype}"
            yield Trial(pair.partition("(")[0], "library", call, _qualified(pair), operands)
    operands = (A, D, B, C, C + 4 * KB, TMP, 9)
    sizes = f"most = least = AscendC::GetSortTmpSize(platform, 9 * 32, {size});"
    yield Trial("GetSortTmpSize", "library", f"Sort {dtype}", sizes, operands)


def _pair(name: str, operands: str) -> tuple[str, str]:
    """Return the two functions that give one size each, under the name of either."""
    return f"Get{name}MinTmpSize({operands})", f"Get{name}MaxTmpSize({operands})"


def _qualified(text: str) -> str:
    if text.endswith(";"):
        return f"AscendC::{text}"
    other = text.replace("MaxTmpSize", "MinTmpSize"), text.replace("MinTmpSize", "MaxTmpSize")
    return f"least = AscendC::{other[0]}; most = AscendC::{other[1]};"


def _reductions() -> Iterator[Trial]:
    kinds = {"float32": "ge::DT_FLOAT", "uint8": "ge::DT_UINT8"}
    for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceAll", "ReduceAny", "ReduceProd"):
        for dtype in kinds if name in ("ReduceAll", "ReduceAny") else ("float32",):
            for pattern in ("AR", "RA"):
                for columns in (40, 100):
                    shape = f"ge::Shape({{17, {columns}}}), {kinds[dtype]}, AscendC::ReducePattern::{pattern}"
                    sizes = f"AscendC::Get{name}MaxMinTmpSize({shape}, true, false, most, least);"
                    call = f"{name} {pattern} {dtype}"
                    operands = (A, B, 17, columns, TMP, "bytes")
                    yield Trial(f"Get{name}MaxMinTmpSize", "composed", call, sizes, operands)
    for call, mode, given, columns in (
        ("TopK", "TOPK_NORMAL", "false", 96),
        ("TopK indexed", "TOPK_NORMAL", "true", 96),
        ("TopK small", "TOPK_NSMALL", "false", 32),
    ):
        for dtype in ("float32", "float16"):
            for largest in (0, 1):
                kind = f"AscendC::TopKMode::{mode}, {'true' if largest else 'false'}, {BYTES[dtype]}"
                rows = f"platform, {columns}, 3, false, {given}"
                sizes = f"AscendC::GetTopKMaxMinTmpSize({rows}, {kind}, most, least);"
                operands = (A, D, B, C, C + 4 * KB, 3, columns, columns, 8, largest, TMP, "bytes")
                yield Trial("GetTopKMaxMinTmpSize", "composed", f"{call} {dtype}", sizes, operands)


def _others() -> Iterator[Trial]:
    sizes = f"AscendC::GetWelfordFinalizeMaxMinTmpSize(ge::Shape({{{COUNT}}}), 4, false, most, least);"
    for counts in (0, D + KB):
        operands: tuple[int | str, ...] = (
            A,
            D,
            B,
            C,
            counts,
            TMP,
            "bytes",
            COUNT,
            4,
            600,
            3,
            400,
            ONE["float32"],
        )
        yield Trial("GetWelfordFinalizeMaxMinTmpSize", "composed", "WelfordFinalize", sizes, operands)
    rows = (ROWS, COLUMNS, COLUMNS - 5, TMP, "bytes")
    for pair in _pair("SoftMaxFlashV2", "matrix, 4, 4, true"):
        operands = (A, D, E, B, C, D, E, 1, *rows)
        yield Trial(pair.partition("(")[0], "library", "SoftmaxFlashV2", _qualified(pair), operands)
    for dtype in ("float32", "float16"):
        for pair in _pair("SoftMaxGrad", f"matrix, {BYTES[dtype]}, false, false"):
            call = f"SoftmaxGrad {dtype}"
            yield Trial(pair.partition("(")[0], "library", call, _qualified(pair), (A, C, B, 0, *rows))
    for dtype, scale in (("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "uint64")):
        sizes = "AscendC::GetAscendDequantMaxMinTmpSize(matrix, 4, most, least);"
        operands = (A, B, C, ROWS, COLUMNS, COLUMNS - 5, TMP, "bytes")
        call = f"AscendDequant {dtype} {scale}"
        yield Trial("GetAscendDequantMaxMinTmpSize", "quantization", call, sizes, operands)


def _gradients() -> Iterator[Trial]:
    for dtype, kept in (("float32", "float32"), ("float16", "float16"), ("float16", "float32")):
        for update in (0, 1):
            shape = f"matrix, {BYTES[kept]}, {'true' if update else 'false'}, false"
            for pair in _pair("SoftMaxFlash", shape):
                places = (A, D, E, B, F, C, C + KB)
                operands: tuple[int | str, ...] = (*places, TMP, "bytes", ROWS, COLUMNS, COLUMNS - 5, update)
                call = f"SoftmaxFlash {kept} {dtype}"
                yield Trial(pair.partition("(")[0], "gradients", call, _qualified(pair), operands)
    sizes = "AscendC::GetSoftMaxFlashV3MaxMinTmpSize(ge::Shape({16, 512}), 2, 4, most, least, true);"
    kept_in = (A, D, D + KB, D + 2 * KB, B, E, C, C + KB, C + 2 * KB)
    operands = (*kept_in, TMP, "bytes", 16, 512, 16, 512, 2, 8, 937500)
    name = "GetSoftMaxFlashV3MaxMinTmpSize"
    yield Trial(name, "gradients", "SoftmaxFlashV3 float16", sizes, operands)
    for source, kind in (("", "DT_INT8"), ("int4 ", "DT_INT4")):
        for dtype, out in (("float16", "DT_FLOAT16"), ("bfloat16", "DT_BF16")):
            for way, scales in (("", "1, 128"), ("transposed ", "8, 1")):
                turned = "true" if way else "false"
                types = f"AscendC::TensorDataType::{kind}, AscendC::TensorDataType::{out}"
                shape = f"ge::Shape({{8, 128}}), ge::Shape({{{scales}}}), {turned}, {types}"
                factor = f"AscendC::GetAscendAntiQuantTmpBufferFactorSize({shape}, factor, extra);"
                call = f"AscendAntiQuant {source}{way}{dtype}"
                operands = (A, B, C, C + KB, TMP, "bytes", 1024, 128 if way else 8, 1)
                name = f"GetAscendAntiQuantMaxMinTmpSize({shape}, most, least);"
                for pair in (name, *_pair("AscendAntiQuant", shape)):
                    function = pair.partition("(")[0]
                    yield Trial(function, "gradients", call, _qualified(pair), operands, factor, 128)


TRIALS = [
    *_elementwise(),
    *_math(),
    *(trial for dtype in ("float32", "float16") for trial in (*_norms(dtype), *_rows(dtype))),
    *_reductions(),
    *_others(),
    *_gradients(),
]
# Calls without a temporary buffer; their sizes are 0.
NONE_NEEDED = {
    "GetLogMaxMinTmpSize": "AscendC::GetLogMaxMinTmpSize(shape, 4, false, most, least);",
    "GetArangeMaxMinTmpSize": "AscendC::GetArangeMaxMinTmpSize(most, least);",
    "GetArithProgressionMaxMinTmpSize": "AscendC::GetArithProgressionMaxMinTmpSize(most, least);",
    "GetConcatTmpSize": "most = least = AscendC::GetConcatTmpSize(platform, 64, 4);",
    "GetTransposeMaxMinTmpSize": "AscendC::GetTransposeMaxMinTmpSize(matrix, 4, 1, most, least);",
    "GetConfusionTransposeMaxMinTmpSize": (
        "AscendC::GetConfusionTransposeMaxMinTmpSize(matrix, 4, 1, most, least);"
    ),
}
# Of a call that kernels do not have.
UNCALLED = {"GetSortMaxMinTmpSize"}


def _body() -> str:
    asked = [(trial.sizes, trial.factor) for trial in TRIALS] + [(text, "") for text in NONE_NEEDED.values()]
    return "\n".join(
        [
            "const platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());",
            f"const ge::Shape shape({{{COUNT}}}), matrix({{{ROWS}, {COLUMNS}}}), "
            f"cube({{4, {ROWS // 4}, {COLUMNS}, {COLUMNS}}});",
            "auto *next = static_cast<uint32_t *>(context->GetRawTilingData()->GetData());",
            "uint32_t most = 0, least = 0, factor = 0, extra = 0;",
            *(
                f"most = least = factor = extra = 0; {sizes} {factor} "
                "*next++ = most; *next++ = least; *next++ = factor; *next++ = extra;"
                for sizes, factor in asked
            ),
            f"context->GetRawTilingData()->SetDataSize({16 * len(asked)});",
            "context->SetBlockDim(1);",
            "return ge::GRAPH_SUCCESS;",
        ]
    )


@pytest.fixture(scope="module")
def sizes(toolchain: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, ...]]:
    """Most, least, factor and extra of each trial, then of what needs nothing."""
    text = '#include "tiling/tiling_api.h"\n' + toy(_body())
    outcome = Host(text, tmp_path_factory.mktemp("sizes"), toolchain).decide()
    return list(struct.iter_unpack("<4I", outcome.tiling_data))


@pytest.fixture(scope="module")
def machines(request: pytest.FixtureRequest) -> dict[str, Machine]:
    folder = request.config.cache.mkdir("vector_machine")
    return {name: build_machine(name, runtime, folder) for name, runtime in RUNTIMES.items()}


def _run(machine: Machine, trial: Trial, scratch_bytes: int, rows: int) -> Array:
    """Return what the call wrote with a buffer of that size, beyond which nothing changes."""
    in_rest = (
        "bytes" not in trial.arguments and trial.machine == "math"
    )  # of what is left of the unified buffer
    machine.reset(TMP + scratch_bytes if in_rest else TMP + scratch_bytes + GUARD_BYTES)
    dtype = next((word for word in trial.call.split()[::-1] if word in ("float32", "float16")), "float32")
    values = np.random.default_rng(3)
    for place in (B, C):
        machine.put(place, values.uniform(0.1, 0.9, 4 * KB // BYTES[dtype]).astype(dtype))
    if not in_rest:
        machine.view(TMP + scratch_bytes, "uint8", GUARD_BYTES)[:] = 0x5A
    filled = {"bytes": scratch_bytes, "rows": rows}
    machine.call(trial.call, *(filled[part] if isinstance(part, str) else part for part in trial.arguments))
    if not in_rest:
        np.testing.assert_array_equal(machine.view(TMP + scratch_bytes, "uint8", GUARD_BYTES), 0x5A)
    return machine.view(A, "uint8", 8 * KB).copy()


@pytest.mark.parametrize("number", range(len(TRIALS)), ids=[trial.name for trial in TRIALS])
def test_calls_work_in_what_hosts_ask_for(
    machines: dict[str, Machine], sizes: list[tuple[int, ...]], number: int
) -> None:
    trial, (most, least, factor, extra) = TRIALS[number], sizes[number]
    assert most >= least
    machine = machines[trial.machine]
    result = _run(machine, trial, most, ROWS)
    np.testing.assert_array_equal(_run(machine, trial, least, 1), result)
    if trial.factor:
        np.testing.assert_array_equal(_run(machine, trial, factor * trial.factor_of + extra, ROWS), result)


def test_calls_without_a_buffer_have_size_zero(sizes: list[tuple[int, ...]]) -> None:
    given = dict(zip(NONE_NEEDED, sizes[len(TRIALS) :], strict=True))
    assert given == dict.fromkeys(NONE_NEEDED, (0, 0, 0, 0))


def test_every_size_of_the_host_headers_is_tried() -> None:
    text = _headers()
    declared = set(re.findall(r"inline \w+ (Get\w+TmpSize)\(", text))
    for macro, ending in (
        ("ASIM_MATH_SCRATCH", "MaxMinTmpSize"),
        ("ASIM_REDUCTION_SCRATCH", "MaxMinTmpSize"),
    ):
        declared |= {f"Get{name}{ending}" for name in re.findall(rf"^{macro}\((\w+),", text, re.MULTILINE)}
    assert declared == {trial.function for trial in TRIALS} | set(NONE_NEEDED) | UNCALLED
