"""Programs of the staged language: random ones, and what evaluates a program against its interpretation."""

from __future__ import annotations

import base64
from random import Random
from typing import Any

import numpy as np
from conftest import make_candidate
from numpy.typing import NDArray

from ascend_gym.core.evaluation_records import GIVEN_SUITE
from ascend_gym.core.records import (
    Case,
    DType,
    EvalRequest,
    GivenArray,
    GivenCase,
    GivenOperator,
    MeasureProtocol,
    OpSpec,
    TensorSpec,
    Tolerance,
)
from ascend_gym.staged.interpret import interpret
from ascend_gym.staged.lower import lower
from ascend_gym.staged.parse import parse
from ascend_gym.staged.verify import Verified, verify
from ascend_gym.suite.skeleton import interface_of

Array = NDArray[Any]

HOST = """def host():
    columns = dim(a, -1)
    rows = size(a) // columns
    tile = min(align(columns, 64), knob("tile", {tile}, [64]))
    launch(cores=min(vec_cores(), {cores}){workspace})


def kernel(a: gm[f32], b: gm[f32], y: out[f32]{work}, rows: i32, columns: i32, tile: i32):
"""


def toy_spec(rows: int, columns: int) -> OpSpec:
    """Return an operator y = f(a, b) with ``a`` and ``y`` of rows x columns and ``b`` of one row."""

    def tensor(name: str, *shape: int) -> TensorSpec:
        return TensorSpec(name=name, dtype=DType.FLOAT32, shapes=(shape,))

    case = Case(
        case_id=f"{rows}x{columns}",
        inputs=(tensor("a", rows, columns), tensor("b", columns)),
        outputs=(tensor("y", rows, columns),),
        tolerance={DType.FLOAT32: Tolerance(atol=1e-5, rtol=1e-5)},
    )
    return OpSpec(
        op_id="local/toy",
        op_type="Toy",
        folder="/nowhere/toy",
        level=1,
        category="elementwise",
        description="a toy",
        auto_sync=True,
        cases=(case,),
        baseline=make_candidate(),
        folder_digest="f" * 64,
    )


def toy_inputs(spec: OpSpec, seed: int) -> list[Array]:
    """Return arrays for the inputs of the only case."""
    rng = np.random.default_rng(seed)
    shapes = [tensor.shapes[0] for tensor in spec.cases[0].inputs]
    return [rng.normal(0, 1, shape).astype(np.float32) for shape in shapes]


def verified(text: str, spec: OpSpec) -> Verified:
    """Return a program verified for an operator."""
    return verify(parse(text), interface_of(spec), spec.cases)


def agreement_request(text: str, spec: OpSpec, inputs: list[Array]) -> EvalRequest:
    """Return a request that is answered with ok exactly if the lowered program does what it is read to do."""
    checked = verified(text, spec)
    case = spec.cases[0]
    outputs = interpret(checked, case, inputs)
    given = GivenOperator(
        op_type=spec.op_type,
        auto_sync=True,
        cases=(GivenCase(case=case, inputs=_given(inputs), expected=_given(outputs)),),
    )
    return EvalRequest(
        op_id=f"{GIVEN_SUITE}/{spec.name}",
        folder_digest=given.digest,
        candidate=lower(checked),
        protocol=MeasureProtocol(),
        given=given,
    )


def _given(arrays: list[Array]) -> tuple[tuple[GivenArray, ...], ...]:
    return tuple(
        (GivenArray(dtype=DType(array.dtype.name), data=base64.b64encode(array.tobytes()).decode()),)
        for array in arrays
    )


def random_program(rng: Random) -> str:
    """Return a program for ``toy_spec`` that breaks no rule, made of one of several shapes."""
    shape = rng.choice([_flat, _rows, _blocks, _held, _meeting])
    return shape(rng)


_PIECES = [
    *([f"{op}({{0}}, {{0}}, {{1}}, {{3}})"] for op in ("add", "sub", "mul", "vmax", "vmin")),
    *([f"{op}({{0}}, {{1}}, -1.5, {{3}})"] for op in ("adds", "muls", "maxs", "mins")),
    ["abs({0}, {1}, {3})", "adds({0}, {0}, 0.5, {3})", "ln({0}, {0}, {3})"],
    ["abs({0}, {1}, {3})", "sqrt({0}, {0}, {3})"],
    ["mins({0}, {1}, 2.0, {3})", "exp({0}, {0}, {3})"],
    ["relu({0}, {1}, {3})", "leaky_relu({0}, {0}, 0.1, {3})"],
    ["muladd({0}, {2}, {2}, {3})", "axpy({0}, {1}, 0.25, {3})"],
    ["fill({0}, 0.75, {3})", "muladd({0}, {2}, {2}, {3})"],
    ["compares_lt(bits, {1}, 0.125, {3})", "selects({0}, bits, {0}, 0.5, {3})"],
    ["compare_ge(bits, t, u, {3})", "select({0}, bits, u, t, {3})"],
    ["abs(u, {1}, {3})", "adds(u, u, 1.0, {3})", "div({0}, t, u, {3})"],
]
"""Instructions over {0}, which they write, {1}, which they may read, an input {2}, and a count {3}."""


def _instructions(rng: Random, sources: list[str], dst: str, indent: str, n: str = "n") -> list[str]:
    """Return some instructions from ``sources`` over temporaries t and u to ``dst``; values stay small."""
    lines = [f"copy(t, {sources[0]}, {n})", f"muls(u, {sources[-1]}, 0.5, {n})"]
    for _ in range(rng.randint(1, 7)):
        one, other = rng.choice(["t", "u"]), rng.choice(["t", "u", *sources])
        lines += [line.format(one, other, rng.choice(sources), n) for line in rng.choice(_PIECES)]
        lines += [f"maxs({one}, {one}, -8.0, {n})", f"mins({one}, {one}, 8.0, {n})"]
    lines.append(f"{rng.choice(['add', 'sub', 'vmax'])}({dst}, t, u, {n})")
    return [f"{indent}{line}" for line in lines]


def _text(
    rng: Random, body: list[str], *, cores: str, extra: tuple[str, ...] = (), work: bool = False
) -> str:
    buffers = [f"{name} = alloc_ub(tile, f32)" for name in "pqtur"]
    buffers += ["bits = alloc_ub(tile // 8, u8)", *extra]
    head = HOST.format(
        tile=rng.choice([64, 128, 512, 2048]),
        cores=cores,
        workspace=", workspace=8 * vec_cores()" if work else "",
        work=", w: work[f32]" if work else "",
    )
    used = [each for each in buffers if any(f"{each.split(' ')[0]}" in line for line in body)]
    return head + "\n".join(f"    {line}" for line in [*used, *body]) + "\n"


def _flat(rng: Random) -> str:
    grain = rng.choice(["", ", 8", ", 64"])
    body = [
        f"first, count = share(rows * columns{grain})",
        "for at, n in tiles(count, tile):",
        "    with copyin():",
        "        load(p, a[first + at], n)",
        "    with compute():",
        *_instructions(rng, ["p"], "r", " " * 8),
        "    with copyout():",
        "        store(y[first + at], r, n)",
    ]
    first_of_b = ["with copyin():", "    load(e, b[0], 1)", "with compute():", "    base = read(e, 0)"]
    body[-2:-2] = ["        adds(r, r, base, n)"]
    cores = "ceil_div(rows * columns, 64)"
    return _text(rng, [*first_of_b, *body], cores=cores, extra=("e = alloc_ub(8, f32)",))


def _rows(rng: Random) -> str:
    kind = rng.choice(["sum", "max", "min"])
    body = [
        "first, count = share(rows)",
        "for row in range(first, first + count):",
        f"    found = {rng.choice(['0.0', '-1.0'])}",
        "    for at, n in tiles(columns, tile):",
        "        with copyin():",
        "            load(p, a[row * columns + at], n)",
        "            load(q, b[at], n)",
        "        with compute():",
        "            mul(t, p, q, n)",
        f"            reduce_{kind}(s, t, w, n)",
        f"            found = {rng.choice(['found + read(s, 0)', 'max(found, read(s, 0))'])}",
        "    if found < 0.5:" if rng.random() < 0.5 else "    if row % 2 == 0:",
        "        scale = found * 0.25",
        "    else:",
        "        scale = 1.0 / (found * found + 1.0)",
        "    for at, n in tiles(columns, tile):",
        "        with copyin():",
        "            load(p, a[row * columns + at], n)",
        "            load(q, b[at], n)",
        "        with compute():",
        *_instructions(rng, ["p", "q"], "r", " " * 12),
        "            adds(r, r, scale, n)",
        "        with copyout():",
        "            store(y[row * columns + at], r, n)",
    ]
    return _text(
        rng, body, cores="rows", extra=("s = alloc_ub(8, f32)", "w = alloc_ub(tile // 4 + 128, f32)")
    )


def _blocks(rng: Random) -> str:
    height = rng.choice([1, 2, 3])
    body = [
        "first, count = share(rows)",
        f"for top, height in tiles(count, {height}):",
        "    for at, n in tiles(columns, tile):",
        "        with copyin():",
        "            load(m, a[(first + top) * columns + at], n, rows=height, pitch=columns)",
        "            load(q, b[at], n)",
        "        with compute():",
        "            for line in range(0, height):",
        *_instructions(rng, ["m[line * align(n, 8)]", "q"], "o[line * align(n, 8)]", " " * 16),
        "        with copyout():",
        "            store(y[(first + top) * columns + at], o, n, rows=height, pitch=columns)",
    ]
    extra = (f"m = alloc_ub(tile * {height}, f32)", f"o = alloc_ub(tile * {height}, f32)")
    return _text(rng, body, cores="rows", extra=extra)


def _held(rng: Random) -> str:
    body = [
        "with compute():",
        "    arange(index, 0, tile)",
        "    muls(index, index, 4, tile)",
        "for at, n in tiles(columns, tile):",
        "    with copyin():",
        "        load(q, b[at], n)",
        "    first, count = share(rows)",
        "    for row in range(first, first + count):",
        "        with copyin():",
        "            load(p, a[row * columns + at], n)",
        "        with compute():",
        *_instructions(rng, ["p", "q"], "r", " " * 12),
        f"        if {rng.choice(['core() % 2 == 0', 'row < 3 or n > 40', 'at == 0 and n > 8'])}:",
        "            with compute():",
        "                gather(t, q, index, 0, n)",
        "                add(r, r, t, n)",
        "        with copyout():",
        "            store(y[row * columns + at], r, n)",
    ]
    return _text(rng, body, cores="rows", extra=("index = alloc_ub(tile, i32)",))


def _meeting(rng: Random) -> str:
    kind = rng.choice(["sum", "max"])
    body = [
        "first, count = share(rows * columns)",
        "mine = 0.0",
        "for at, n in tiles(count, tile):",
        "    with copyin():",
        "        load(p, a[first + at], n)",
        "    with compute():",
        f"        reduce_{kind}(s, p, v, n)",
        f"        mine = {rng.choice(['mine + read(s, 0)', 'max(mine, read(s, 0))'])}",
        "with compute():",
        "    fill(g, 0.0, 8)",
        "    write(g, 0, mine)",
        "with copyout():",
        "    store(w[core() * 8], g, 8)",
        "sync_all()",
        "with copyin():",
        "    load(h, w[0], cores() * 8)",
        "with compute():",
        "    reduce_sum(s, h, v, cores() * 8)",
        "    total = read(s, 0) * 0.01",
        "first, count = share(rows)",
        "for row in range(first, first + count):",
        "    for at, n in tiles(columns, tile):",
        "        with copyin():",
        "            load(p, a[row * columns + at], n)",
        "            load(q, b[at], n)",
        "        with compute():",
        *_instructions(rng, ["p", "q"], "r", " " * 12),
        "            adds(r, r, total, n)",
        "        with copyout():",
        "            store(y[row * columns + at], r, n)",
    ]
    sizes = {"s": "8", "v": "tile // 4 + 256", "g": "8", "h": "384"}
    extra = tuple(f"{name} = alloc_ub({size}, f32)" for name, size in sizes.items())
    return _text(rng, body, cores="rows", extra=extra, work=True)
