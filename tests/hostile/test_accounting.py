"""Work of the scalar unit is counted whatever the source calls it: it never costs less than the vector's."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_candidates import Court, replaced_candidate

from ascend_gym.core.records import EvalResult
from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend

pytestmark = pytest.mark.slow

KERNEL = """
#pragma once
#include "honest.h"
#include <cstring>

%(outside)s
class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        AscendC::PipeBarrier<PIPE_ALL>();
        float* from = (float*)x.GetPhyAddr();
        float* to = (float*)y.GetPhyAddr();
        %(body)s
        AscendC::PipeBarrier<PIPE_ALL>();
    }
};
"""
LOOP = "for (uint32_t i = 0; i < count; ++i) {{ {} }}"
WAYS: dict[str, tuple[str, str]] = {
    "plain accesses": ("", LOOP.format("to[i] = 2.0f * from[i] + 1.0f;")),
    "volatile accesses": (
        "",
        LOOP.format("*(volatile float*)&to[i] = 2.0f * *(volatile float*)&from[i] + 1.0f;"),
    ),
    "complex numbers": (
        "typedef _Complex float Pair;",
        "for (uint32_t i = 0; i < count; i += 2) {"
        " Pair pair = *(Pair*)&from[i]; __real__ pair = 2.0f * __real__ pair + 1.0f;"
        " __imag__ pair = 2.0f * __imag__ pair + 1.0f; *(Pair*)&to[i] = pair; }",
    ),
    "casts of bits": (
        "struct Words { uint32_t words[2]; };",
        "for (uint32_t i = 0; i < count; i += 2) {"
        " const Words words = __builtin_bit_cast(Words, *(uint64_t*)&from[i]);"
        " const float low = 2.0f * __builtin_bit_cast(float, words.words[0]) + 1.0f;"
        " const float high = 2.0f * __builtin_bit_cast(float, words.words[1]) + 1.0f;"
        " *(uint64_t*)&to[i] = (uint64_t)__builtin_bit_cast(uint32_t, high) << 32 |"
        " __builtin_bit_cast(uint32_t, low); }",
    ),
    "structures at once": (
        "struct Four { float values[4]; };",
        "for (uint32_t i = 0; i < count; i += 4) {"
        " Four four = *(Four*)&from[i]; for (float& value : four.values) value = 2.0f * value + 1.0f;"
        " *(Four*)&to[i] = four; }",
    ),
    "structured bindings": (
        "struct Two { float first, second; };",
        "for (uint32_t i = 0; i < count; i += 2) {"
        " auto& [a, b] = *(Two*)&from[i]; auto& [c, d] = *(Two*)&to[i]; c = 2.0f * a + 1.0f; d = 2.0f * b + 1.0f; }",
    ),
    "memory functions": (
        "",
        "float values[64]; for (uint32_t i = 0; i < count; i += 64) {"
        " __builtin_memcpy(values, from + i, sizeof values); for (float& value : values) value = 2.0f * value + 1.0f;"
        " memcpy(to + i, values, sizeof values); }",
    ),
    "helpers that ask for no instrumentation": (
        '__attribute__((no_sanitize("address", "kernel-address"), no_profile_instrument_function, always_inline))\n'
        "inline void One(float* to, const float* from) { *to = 2.0f * *from + 1.0f; }",
        LOOP.format("One(&to[i], &from[i]);"),
    ),
    "functions without attributes to be inlined by": (
        "__attribute__((naked, noinline)) void Never();\n"
        "__attribute__((noinline, pure, flatten)) float Twice(float value) { return 2.0f * value + 1.0f; }",
        LOOP.format("to[i] = Twice(from[i]);"),
    ),
    "pragmas of compilers": (
        '#pragma GCC optimize("O3")\n'
        "#pragma clang attribute push(__attribute__((disable_sanitizer_instrumentation)), "
        "apply_to = function)\ninline float Twice(float value) { return 2.0f * value + 1.0f; }\n"
        "#pragma clang attribute pop",
        "\n#pragma clang loop unroll(enable)\n" + LOOP.format("to[i] = Twice(from[i]);"),
    ),
}


@pytest.fixture(scope="module")
def court(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Court:
    return Court(simulator, tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def honest_us(court: Court) -> float:
    return latency_us(court.judge(court.spec.baseline))


def judged(court: Court, outside: str, body: str) -> EvalResult:
    kernel = KERNEL % {"outside": outside, "body": body}
    return court.judge(replaced_candidate(court.spec, {"op_kernel/candidate.h": kernel}))


def latency_us(result: EvalResult) -> float:
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]
    assert result.latency_us is not None
    return result.latency_us


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_of_the_scalar_unit_costs_more_than_the_vector_unit(
    court: Court, honest_us: float, way: str
) -> None:
    assert latency_us(judged(court, *WAYS[way])) > 1.5 * honest_us


def test_ways_to_write_a_loop_cost_the_same_within_a_factor(court: Court) -> None:
    prices = {way: latency_us(judged(court, *WAYS[way])) for way in WAYS}
    plain = prices["plain accesses"]
    assert all(price > plain / 4 for price in prices.values()), prices


def test_straight_code_costs_by_its_length(court: Court) -> None:
    """One basic block, with few or many operations in it."""
    honest = "AscendC::Muls(y, x, 2.0f, count); AscendC::Adds(y, y, 1.0f, count);"
    prices = []
    for length in (20, 2000):
        steps = "".join(f" value = value * {n}.5f + {n}.25f;" for n in range(1, length))
        keep = "volatile float kept = 1.0f; float value = kept;"
        prices.append(latency_us(judged(court, "", f"{honest} {keep}{steps} kept = value;")))
    assert prices[1] > 1.3 * prices[0]


def test_a_stack_tells_nothing_of_the_block_before(court: Court) -> None:
    """A mark in the frame of one block would let the next one leave work out; it finds none."""
    outside = (
        "__attribute__((noinline)) inline bool Marked(bool leave) {\n"
        "    volatile uint64_t frame[64];\n    uint32_t found = 0;\n"
        "    for (int i = 0; i < 64; ++i) found += frame[i] == 0x5ca1ab1e0ddba11ull;\n"
        "    for (int i = 0; leave && i < 64; ++i) frame[i] = 0x5ca1ab1e0ddba11ull;\n    return found > 8;\n}\n"
    )
    body = (
        "if (offset != 0 || !Marked(false)) {"
        " AscendC::Muls(y, x, 2.0f, count); AscendC::Adds(y, y, 1.0f, count); }"
        " if (offset + count == 0xffffffff) Marked(true);"
        " else { Marked(true); }"
    )
    result = judged(court, outside, body)
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]


def test_only_memory_of_the_kernel_is_read(court: Court, tmp_path: Path) -> None:
    result = judged(court, "", "volatile uint64_t where = 0x400000; to[0] = *(volatile float*)where;")
    told = str(next(iter(result.all_diagnostics)))
    assert result.status is Status.RUNTIME_FAULT
    assert "outside all memory of the kernel" in told
    assert "candidate.h" in told
