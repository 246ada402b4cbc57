"""Every element-wise instruction against scalar numpy: types, tails, partial masks, strides, counter mode.

All 65,536 half numbers go through every unary instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vector_machine import (
    REPEAT_BYTES,
    Array,
    Layout,
    Machine,
    MachineFault,
    active_lanes,
    build_machine,
    leading_mask,
)

import npu_daemon.simulator
from ascend_gym.core.calls import KnownCall, known_calls

DEFINITIONS = Path(npu_daemon.simulator.__file__).parent / "include" / "asim" / "trace" / "instructions.def"

FLOAT, ARITHMETIC = ("float16", "float32"), ("float16", "float32", "int16", "int32")
BITS, SHIFTS = ("int16", "uint16"), ("int16", "uint16", "int32", "uint32")
DST, SRC0, SRC1 = 0, 24 * 1024, 44 * 1024
Scalar = Any


def relu(x: Scalar) -> Scalar:
    return x if x > 0 or x != x else x.dtype.type(0)


def larger(a: Scalar, b: Scalar) -> Scalar:
    return a if a > b or a != a else b


def smaller(a: Scalar, b: Scalar) -> Scalar:
    return a if a < b or a != a else b


def through_double(function: Callable[[Array], Array]) -> Callable[[Scalar], Scalar]:
    """Return the function as rounded to float, then to the type of its argument."""
    return lambda x: np.float32(function(np.float64(x))).astype(x.dtype)


def in_float(function: Callable[[Array], Array]) -> Callable[[Scalar], Scalar]:
    return lambda x: function(np.float32(x)).astype(x.dtype)


def reciprocal_estimate(x: Scalar) -> Scalar:
    """Return eight bits of the reciprocal of the middle of the interval, by integers (device verdicts)."""
    if x == 0 or not np.isfinite(x):
        return (np.float32(1) / np.float32(x)).astype(x.dtype)
    part, exponent = np.frexp(np.float64(abs(x)))
    twice = 2 * int(part * 512) + 1
    eight = ((1 << 19) // twice + 1) // 2
    return np.float32(np.copysign(np.ldexp(np.float64(eight), -8 - exponent), x)).astype(x.dtype)


def root_estimate(x: Scalar) -> Scalar:
    """Return eight bits of the reciprocal of the root of the middle of the interval, by integers."""
    if not x > 0 or not np.isfinite(x):
        return (np.float32(1) / np.sqrt(np.float32(x))).astype(x.dtype)
    part, exponent = np.frexp(np.float64(x))
    if exponent % 2:
        part, exponent = part / 2, exponent + 1
    step = int(part * 512)
    middle = 2 * step + 1 if step < 256 else 2 * (step // 2 * 2 + 1)  # in 1 / 1024
    nine = next(root for root in range(512, 1025) if middle * (root + 1) ** 2 >= 1 << 28)
    eight = (nine + 1) // 2
    return np.float32(np.ldexp(np.float64(eight), -8 - exponent // 2)).astype(x.dtype)


UNARY: dict[str, tuple[tuple[str, ...], Callable[..., Scalar]]] = {
    "Abs": (FLOAT, np.abs),
    "Relu": ((*FLOAT, "int32"), relu),
    "Exp": (FLOAT, through_double(np.exp)),
    "Ln": (FLOAT, through_double(np.log)),
    "Sqrt": (FLOAT, in_float(np.sqrt)),
    "Rsqrt": (FLOAT, root_estimate),
    "Reciprocal": (FLOAT, reciprocal_estimate),
}
BINARY: dict[str, tuple[tuple[str, ...], Callable[..., Scalar]]] = {
    "Add": (ARITHMETIC, lambda a, b: a + b),
    "Sub": (ARITHMETIC, lambda a, b: a - b),
    "Mul": (ARITHMETIC, lambda a, b: a * b),
    "Max": (ARITHMETIC, larger),
    "Min": (ARITHMETIC, smaller),
    "And": (BITS, lambda a, b: a & b),
    "Or": (BITS, lambda a, b: a | b),
    "AddRelu": ((*FLOAT, "int16"), lambda a, b: larger(a + b, a.dtype.type(0))),
    "SubRelu": ((*FLOAT, "int16"), lambda a, b: larger(a - b, a.dtype.type(0))),
}
WITH_SCALAR: dict[str, tuple[tuple[str, ...], Callable[..., Scalar]]] = {
    "Adds": (ARITHMETIC, lambda a, b: a + b),
    "Muls": (ARITHMETIC, lambda a, b: a * b),
    "Maxs": (ARITHMETIC, larger),
    "Mins": (ARITHMETIC, smaller),
    "ShiftLeft": (SHIFTS, lambda a, b: a << b),
    "ShiftRight": (SHIFTS, lambda a, b: a >> b),
}
OPERANDS = {"unary": ("src",), "binary": ("src0", "src1"), "with_scalar": ("src", "scalar")}
DTYPES = {"half": "float16", "float": "float32"} | {
    f"{of}_t": of for of in ("int16", "uint16", "int32", "uint32")
}
WIDENING = ("float16>float16", "float32>float32", "float16>float32")


@dataclass(frozen=True)
class Instruction:
    """One instruction for one pair of element types."""

    name: str
    sources: int
    scalar: bool
    source_dtype: str
    dtype: str
    function: Callable[..., Scalar]
    reads_dst: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.types}"

    @property
    def types(self) -> str:
        """The types as the driver names them."""
        accumulates = self.name in ("Axpy", "MulAddDst")
        return f"{self.source_dtype}>{self.dtype}" if accumulates else self.dtype


def told(call: KnownCall, dtype: str) -> Callable[..., Scalar]:
    """Return what the table of calls says of a call's result, in one element type; dst comes last."""
    code, kind = compile(call.dst, call.name, "eval"), np.dtype(dtype).type
    functions = {"__builtins__": {"abs": abs, "max": max, "min": min}}
    names = (*OPERANDS[call.form], "dst")
    return lambda *values: eval(code, functions, dict(zip(names, map(kind, values), strict=False)))


def instructions() -> Iterator[Instruction]:
    """Yield those of the tables above, and those whose result the table of calls tells."""
    for table, sources, scalar in ((UNARY, 1, False), (BINARY, 2, False), (WITH_SCALAR, 1, True)):
        for name, (dtypes, function) in table.items():
            for dtype in dtypes:
                yield Instruction(name, sources, scalar, dtype, dtype, function)
    for call in known_calls():
        for pair in [f"{DTYPES[of]}>{DTYPES[of]}" for of in call.types] or WIDENING if call.dst else ():
            source, target = pair.split(">")
            operands = len(OPERANDS[call.form])
            scalar = call.form == "with_scalar"
            yield Instruction(
                call.name, operands - scalar, scalar, source, target, told(call, target), call.reads_dst
            )
    for dtype in ("float16", "float32", "int16", "uint16", "int32", "uint32"):
        yield Instruction("Duplicate", 0, True, dtype, dtype, lambda s: s)


ALL = list(instructions())


def test_every_element_wise_instruction_has_an_expected_result() -> None:
    """Without a ``dst`` in ascend_gym/core/calls.toml, or a row in one of the tables here, it has none."""
    rows = re.findall(r"^ELEMENTWISE\((\w+), (\w+),", DEFINITIONS.read_text("utf-8"), re.MULTILINE)
    assert {name for name, _ in rows} <= {each.name for each in ALL}
    forms = {name: form.replace("fused", "binary") for name, form in rows}
    told_of = {name: call.form for call in known_calls() if call.form for name in call.names}
    assert {name: told_of.get(name) for name in forms} == forms
    fused = {name for name, form in rows if form == "fused"}
    assert {name for call in known_calls() if call.reads_dst for name in call.names} & forms.keys() == fused


@dataclass(frozen=True)
class Form:
    """How an instruction is told which lanes take part, and where they are.

    Attributes:
        name: of the form in the driver.
        lanes: a count of elements, or of leading lanes.
        mask: low and high word of the bit mask.
        repeats: number of repeats; a form with a count has as many as it needs.
        strides: block and repeat stride of dst, src0 and src1.
    """

    name: str
    lanes: int = 0
    mask: tuple[int, int] = (0, 0)
    repeats: int = 1
    strides: tuple[tuple[int, int], ...] = ((1, 8), (1, 8), (1, 8))

    def active(self, lanes: int) -> Iterator[tuple[int, int]]:
        """Yield repeat and lane of every element that takes part; a repeat has ``lanes`` lanes."""
        if self.name in ("count", "counter"):
            yield from (divmod(index, lanes) for index in range(self.lanes))
            return
        mask = self.mask if self.name == "bits" else leading_mask(self.lanes)
        for repeat in range(self.repeats):
            yield from ((repeat, lane) for lane in active_lanes(mask, lanes))


FORMS = (
    *(Form("count", lanes=count) for count in (0, 1, 7, 64, 65, 200, 515)),
    *(Form("lanes", lanes=lanes, repeats=3) for lanes in (1, 13, 64)),
    Form("lanes", lanes=64, repeats=2, strides=((1, 9), (2, 16), (1, 8))),
    Form("lanes", lanes=37, repeats=3, strides=((1, 10), (1, 8), (1, 12))),
    Form("lanes", lanes=30, repeats=3, strides=((1, 8), (1, 0), (0, 8))),
    Form("bits", mask=(0xDEADBEEF12345678, 0x0F0F0F0F), repeats=2),
    Form("bits", mask=(0xFFFF0000FFFF, 1 << 63), repeats=2, strides=((2, 18), (1, 8), (3, 25))),
    Form("counter", lanes=77, strides=((1, 9), (1, 8), (2, 16))),
    Form("counter", lanes=256),
)


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest) -> Machine:
    return build_machine("elementwise", ["vector_elementwise"], request.config.cache.mkdir("vector_machine"))


def values(dtype: str, count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        wide = rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)
        return wide >> rng.integers(0, info.bits, count, dtype=kind)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 65504.0, 2.0**-24, 6e-5], kind)
    numbers = (rng.standard_normal(count) * 2.0 ** rng.integers(-12, 12, count)).astype(kind)
    places = rng.integers(0, count, count // 8)
    numbers[places] = special[np.arange(len(places)) % len(special)]
    return numbers


def scalar_of(instruction: Instruction) -> Scalar:
    kind = np.dtype(instruction.source_dtype)
    return kind.type(3) if kind.kind in "iu" else kind.type(-0.37)


def expected_ub(instruction: Instruction, form: Form, ub: Array) -> Array:
    """Return the unified buffer after the instruction, computed one element at a time."""
    result = ub.copy()
    kind, source_kind = np.dtype(instruction.dtype), np.dtype(instruction.source_dtype)
    widest = max(kind.itemsize, source_kind.itemsize)
    strides = form.strides
    if form.name == "count":  # elements lie side by side, whatever their size
        strides = tuple((1, 8 * size // widest) for size in (kind.itemsize, *2 * (source_kind.itemsize,)))
    places = [Layout(offset, *stride) for offset, stride in zip((DST, SRC0, SRC1), strides, strict=True)]

    def element(place: Layout, repeat: int, lane: int, dtype: np.dtype[Any]) -> Array:
        start = place.lane_offset_bytes(repeat, lane, dtype.itemsize)
        return result[start : start + dtype.itemsize].view(dtype)

    with np.errstate(all="ignore"):
        for repeat, lane in form.active(REPEAT_BYTES // widest):
            arguments = [
                element(place, repeat, lane, source_kind)[0] for place in places[1 : 1 + instruction.sources]
            ]
            if instruction.scalar:
                arguments.append(scalar_of(instruction))
            target = element(places[0], repeat, lane, kind)
            if instruction.reads_dst:
                arguments.append(target[0])
            target[0] = instruction.function(*arguments)
    return result


def issue(machine: Machine, instruction: Instruction, form: Form) -> None:
    bits = int.from_bytes(scalar_of(instruction).tobytes(), "little")
    blocks, repeats = zip(*form.strides, strict=True)
    arguments = (DST, SRC0, SRC1, bits, form.lanes, *form.mask, form.repeats, *blocks, *repeats)
    name = "lanes" if form.name == "counter" else form.name
    if form.name == "counter":
        machine.call("SetMaskCount")
    machine.call(f"{name} {instruction.name} {instruction.types}", *arguments)


def check(machine: Machine, instruction: Instruction, form: Form, seed: int) -> None:
    """Run one form on random data and compare every byte of the unified buffer."""
    machine.reset()
    kind, source_kind = np.dtype(instruction.dtype), np.dtype(instruction.source_dtype)
    machine.put(DST, values(instruction.dtype, SRC0 // kind.itemsize, seed))
    for number, offset in enumerate((SRC0, SRC1)):
        machine.put(
            offset, values(instruction.source_dtype, 5 * 4096 // source_kind.itemsize, seed + number + 1)
        )
    want = expected_ub(instruction, form, machine.ub)
    issue(machine, instruction, form)
    got, expected = machine.ub[:SRC0].view(kind), want[:SRC0].view(kind)
    if kind.kind == "f":
        both_nan = np.isnan(got) & np.isnan(expected)
        got, expected = np.where(both_nan, 0, got), np.where(both_nan, 0, expected)
    if kind.kind == "f" and instruction.name in ("Exp", "Ln"):
        np.testing.assert_array_max_ulp(got, expected, maxulp=1)
    else:
        assert got.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(machine.ub[SRC0:], want[SRC0:])


@pytest.mark.parametrize("instruction", ALL, ids=str)
def test_every_form_matches_scalar_code(machine: Machine, instruction: Instruction) -> None:
    for seed, form in enumerate(FORMS):
        check(machine, instruction, form, seed)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_mask_and_any_strides(machine: Machine, data: st.DataObject) -> None:
    instruction = data.draw(st.sampled_from(ALL))
    word = st.integers(0, 2**64 - 1)
    stride = st.tuples(st.integers(1, 3), st.integers(0, 24))
    # a destination that does not overlap itself
    dst_stride = st.sampled_from([(1, 8), (1, 11), (2, 16), (3, 24)])
    mask = data.draw(st.one_of(st.tuples(word, word), st.integers(1, 64).map(leading_mask)))
    strides = (data.draw(dst_stride), data.draw(stride), data.draw(stride))
    form = Form("bits", mask=mask, repeats=data.draw(st.integers(0, 4)), strides=strides)
    check(machine, instruction, form, data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("name", [name for name, (dtypes, _) in UNARY.items() if "float16" in dtypes])
def test_every_half_number(machine: Machine, name: str) -> None:
    everything = np.arange(65536, dtype=np.uint16)
    patterns = everything.view(np.float16)
    for start in range(0, 65536, 8192):
        machine.reset()
        machine.put(SRC0, patterns[start : start + 8192])
        machine.call(f"count {name} float16", DST, SRC0, 0, 0, 8192)
        with np.errstate(all="ignore"):
            function = UNARY[name][1]
            expected = np.array([function(x) for x in patterns[start : start + 8192]], np.float16)
        np.testing.assert_array_equal(machine.view(DST, "float16", 8192), expected)


@pytest.mark.parametrize("offset_bytes", [32, 96])
def test_a_destination_over_a_part_of_its_source_is_a_fault(machine: Machine, offset_bytes: int) -> None:
    machine.reset()
    with pytest.raises(MachineFault, match="dst overlaps source 0 in part, in repeat 0"):
        machine.call("count Adds float16", SRC0 + offset_bytes, SRC0, 0, 0, 64)


@pytest.mark.parametrize("name", ["Axpy", "MulAddDst"])
def test_halfs_are_not_added_to_floats_in_the_same_place(machine: Machine, name: str) -> None:
    """Pages of both, constraints: no overlap where the source is of halfs and the destination of floats."""
    with pytest.raises(MachineFault, match="dst overlaps source 0: floats that halfs are added to"):
        machine.call(f"count {name} float16>float32", SRC0, SRC0, SRC1, 0, 64)
    machine.call(f"count {name} float16>float32", DST, SRC0, SRC1, 0, 64)
    machine.call(f"count {name} float32>float32", SRC0, SRC0, SRC1, 0, 64)


@pytest.mark.parametrize("name", ["Muls", "Adds", "Mul", "Add", "Sub", "Div", "Axpy", "Sqrt", "Ln", "Exp"])
def test_arithmetic_of_floats_has_one_nan(machine: Machine, name: str) -> None:
    """Negative integers whose bits are NaN came back as 0x7fffffff from a 910B2 (docs/fidelity.md, 80)."""
    machine.reset()
    integers = np.array([-16, -1, 0x7F800001, 5] * 16, np.int32)
    machine.put(SRC0, integers.view(np.float32))
    machine.put(SRC1, np.ones(64, np.float32))
    one = int.from_bytes(np.float32(1).tobytes(), "little")
    types = "float32>float32" if name == "Axpy" else "float32"
    machine.call(f"count {name} {types}", DST, SRC0, SRC1, one, 64)
    got = machine.view(DST, "int32", 64).reshape(16, 4)
    assert (got[:, :3] == 0x7FFFFFFF).all()
    assert name not in ("Muls", "Mul", "Div") or (got[:, 3] == 5).all(), "denormals are kept"
