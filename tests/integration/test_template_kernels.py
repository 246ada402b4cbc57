"""Kernels that are templates: the tiling key chooses the instance, from the declaration to the price."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from simulated import Workbench

from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.rewrites.candidate_files import with_texts
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.coverage import coverage_of

FOLDER = Path(__file__).parent.parent / "operators" / "affine"
HEADER = "op_kernel/affine_tiling_key.h"
ASC_DEVKIT = "ASCEND_GYM_ASC_DEVKIT"
SAMPLE = "examples/01_simd_cpp_api/02_features/99_acl_based/00_acl_compilation/custom_op"
TEMPLATE = "template <typename D_T, int SHAPE, int BUFFERS, bool SHIFT>\n__global__"
PLAIN = (
    "using D_T = float; constexpr int SHAPE = AFFINE_FLAT, BUFFERS = 2; constexpr bool SHIFT = true;\n"
    'extern "C" __global__'
)
SELECTED = "static_cast<uint32_t>(type), shape, BUFFERS, 1"
BEHIND = (
    "\n#define tiling_template nowhere\n#define Choice int\n#define static_cast oops\n#define size begin\n"
    "#define asim_input_slots_ 1\n#define uint64_t int8_t\n#define values keys\n#define inline\n"
)


@pytest.fixture(scope="module")
def bench(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), "affine", "fp32", op_dir=FOLDER)


@pytest.fixture(scope="module")
def halfs(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("data"), "affine", "fp16_tail", op_dir=FOLDER)


def key(result: EvalResult) -> int:
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]
    launch = result.cases[0].launch
    assert launch is not None
    return launch.tiling_key


def header_edited(bench: Workbench, old: str, new: str, candidate: Candidate | None = None) -> Candidate:
    base = candidate or bench.spec.baseline
    text = base.texts[HEADER]
    assert old in text
    return with_texts(base, {HEADER: text.replace(old, new, 1)})


def failure_of(bench: Workbench, candidate: Candidate) -> tuple[Status, str]:
    result = bench.evaluate(candidate)
    return result.status, str(result.all_diagnostics[0])


def test_each_case_runs_the_instance_of_its_key(bench: Workbench, halfs: Workbench) -> None:
    """D_T in bits 0 to 7, the place of SHAPE in 8 and 9, that of BUFFERS in 10 to 17, SHIFT in 18."""
    assert key(bench.evaluate(bench.spec.baseline)) == 0 | 0 << 8 | 1 << 10 | 1 << 18
    assert key(halfs.evaluate(halfs.spec.baseline)) == 1 | 1 << 8 | 1 << 10 | 1 << 18


def test_an_instance_costs_what_the_same_kernel_costs_without_a_template(bench: Workbench) -> None:
    called = "    op.Process();\n}"
    chosen = key(bench.evaluate(bench.spec.baseline))
    asked = f"    if (TILING_KEY_IS({chosen})) {{\n        op.Process();\n    }}\n}}"
    plain = bench.edited(kernel={TEMPLATE: PLAIN, called: asked})
    assert bench.latency_of_us(plain) == pytest.approx(bench.latency_of_us(bench.spec.baseline), rel=1e-3)


def test_the_tiling_program_chooses_among_the_declared_combinations(bench: Workbench) -> None:
    one = bench.evaluate(bench.edited(tiling={"BUFFERS = 2": "BUFFERS = 1"}))
    assert key(one) == 1 << 18
    assert one.latency_us != bench.latency_of_us(bench.spec.baseline)


def test_a_header_of_both_sides_is_one_file(bench: Workbench) -> None:
    wide = header_edited(bench, "TILE_BYTES = 4096", "TILE_BYTES = 8192")
    assert bench.latency_of_us(wide) != bench.latency_of_us(bench.spec.baseline)


def test_a_combination_that_is_not_declared_has_no_kernel(bench: Workbench, halfs: Workbench) -> None:
    status, said = failure_of(halfs, halfs.edited(tiling={"BUFFERS = 2": "BUFFERS = 4"}))
    assert status is Status.TILING_ERROR
    assert "(D_T = 1, SHAPE = 3, BUFFERS = 4, SHIFT = 1) is none that ASCENDC_TPL_SEL has. It has: " in said
    assert "D_T 1; SHAPE 7, 3; BUFFERS 1 to 2; SHIFT 1 | D_T 0; SHAPE 7; BUFFERS 1, 2, 4; SHIFT 1" in said
    status, said = failure_of(bench, bench.edited(tiling={"BUFFERS = 2": "BUFFERS = 3"}))
    assert status is Status.TILING_ERROR
    assert "BUFFERS has no value 3" in said
    other = bench.edited(tiling={SELECTED: SELECTED.replace("static_cast<uint32_t>(type)", "C_DT_FLOAT16")})
    status, said = failure_of(bench, other)
    assert status is Status.TILING_ERROR
    assert "D_T is declared to be what a tensor has, which is another" in said


def test_declaration_call_and_template_must_fit(bench: Workbench) -> None:
    status, said = failure_of(bench, bench.edited(tiling={", BUFFERS, 1)": ", BUFFERS)"}))
    assert status is Status.BUILD_ERROR
    assert (
        "take a value for each of the 4 parameters (D_T, SHAPE, BUFFERS, SHIFT), in this order; got 3" in said
    )
    assert "op_host/affine.cpp" in said
    more = bench.edited(kernel={TEMPLATE: TEMPLATE.replace("bool SHIFT", "bool SHIFT, int MORE")})
    status, said = failure_of(bench, more)
    assert status is Status.BUILD_ERROR
    assert (
        "the kernel has 5 template parameters, ASCENDC_TPL_ARGS_DECL declares 4 (D_T, SHAPE, BUFFERS" in said
    )
    status, said = failure_of(bench, header_edited(bench, "UI_LIST, AFFINE_FLAT)", "UI_LIST, 8)"))
    assert status is Status.BUILD_ERROR
    assert (
        "ASCENDC_TPL_UINT_SEL SHAPE has the value 8, which its ASCENDC_TPL_UINT_DECL does not list: 7, 3"
        in said
    )
    assert HEADER in said
    status, said = failure_of(bench, bench.edited(kernel={"    REGISTER_TILING_DEFAULT": "    //"}))
    assert status is Status.BUILD_ERROR
    assert "expected REGISTER_TILING_DEFAULT" in said
    status, said = failure_of(bench, header_edited(bench, "ASCENDC_TPL_SEL(", "#define OTHER(...)\nOTHER("))
    assert status is Status.BUILD_ERROR
    assert "the kernel is a template, but its parameters are not declared" in said


def test_nothing_of_a_kernel_gets_in_the_way_of_its_call(bench: Workbench) -> None:
    text = bench.spec.baseline.kernel_text
    assert bench.latency_of_us(bench.spec.baseline.rewritten(kernel=text + BEHIND)) > 0
    taken = 'extern "C" constexpr int asim_tpl_choice() { return 0; }\n'
    status, said = failure_of(bench, bench.spec.baseline.rewritten(kernel=text + taken))
    assert status is Status.BUILD_ERROR
    assert "poisoned" in said


def test_every_instance_is_built_where_no_key_is_known(
    bench: Workbench, simulator: SimulatorBackend, tmp_path: Path
) -> None:
    """Marked builds have all instances of a column; an unknown key is told when the kernel is launched."""
    spec = bench.spec.model_copy(update={"cases": bench.spec.cases[:1]})
    coverage = coverage_of(spec, tmp_path, simulator.toolchain, MeasureProtocol())
    assert coverage.failures == ()
    assert any(file.path == "op_kernel/affine.cpp" and file.reached for file in coverage.files)
    spec = spec.model_copy(update={"baseline": bench.edited(tiling={"BUFFERS, 1)": "BUFFERS, 0)"})})
    (said,) = coverage_of(spec, tmp_path, simulator.toolchain, MeasureProtocol()).failures
    assert "no combination of template parameters has tiling key 1024, which the tiling program chose" in said


MANIFEST = """
[operator]
type = "AddCustomTemplate"
level = 1
category = "elementwise"
description = "The published sample of a kernel that is a template"
auto_sync = false

[tolerance.float16]
atol = 1e-3
rtol = 1e-3
max_bad_share = 0.0

[[case]]
id = "fp16"
input = [
    { name = "x", dtype = "float16", shape = [8, 2048] },
    { name = "y", dtype = "float16", shape = [8, 2048] },
]
output = [{ name = "z", dtype = "float16", shape = [8, 2048] }]
"""


@pytest.mark.skipif(ASC_DEVKIT not in os.environ, reason=f"{ASC_DEVKIT} names no checkout of asc-devkit")
def test_the_published_sample_runs_as_it_is(simulator: SimulatorBackend, tmp_path: Path) -> None:
    folder = tmp_path / "add_custom_template"
    for side in ("op_host", "op_kernel"):
        published = Path(os.environ[ASC_DEVKIT]) / SAMPLE / side / "add_custom_template"
        shutil.copytree(published, folder / side / "add_custom_template")
    (folder / "op.toml").write_text(MANIFEST)
    (folder / "reference.py").write_text(
        "def reference(inputs, attributes):\n    return {'z': inputs['x'] + inputs['y']}\n"
    )
    bench = Workbench(simulator, tmp_path / "data", "add_custom_template", "fp16", op_dir=folder)
    # Three times DT_FLOAT16 in 8 bits each, the place of 8 among 0 to 5, 10, 12, 13, 9 and 8, and IS_SPLIT.
    assert key(bench.evaluate(bench.spec.baseline)) == 0x010101 | 10 << 24 | 1 << 32
