"""The target sheet says what the chip files say, and the sheet of calls fits the operator."""

import re
from pathlib import Path

import pytest

from ascend_gym.core.calls import known_calls
from ascend_gym.search.llm.sheets import Scope, calls_for, sheets, without_sheets
from ascend_gym.suite.loader import load_operator
from npu_daemon.simulator import chips
from npu_daemon.simulator.chips import chip_names, load_chip
from npu_daemon.simulator.target import instruction_groups, target_sheet

AFFINE = Path(__file__).parents[1] / "operators" / "affine"
_ESTIMATE = Path(chips.__file__).parent / "include/asim/numeric/estimate.h"


def _names(operator):
    spec = load_operator(operator)
    return {name for call in calls_for(spec, spec.baseline) for name in call.names}


@pytest.mark.parametrize("chip", chip_names())
def test_every_chip_has_a_sheet_with_its_own_figures(chip):
    figures, sheet = load_chip(chip), target_sheet(chip)
    spec = load_operator("add")
    text = sheets(spec, spec.baseline, sheet)
    cores, clock = figures.geometry["aiv_cores"].value, figures.timing["clock_mhz"].value
    assert f"- Ascend {chip}: {cores} vector cores (AIV)" in text
    assert f"at {clock} MHz" in text
    assert f"HBM {figures.timing['hbm_gb_per_s'].value} GB/s" in text
    assert [each.blocks for each in sheet.launches][-1] == cores
    assert list(sheet.launches) == sorted(sheet.launches, key=lambda each: each.vector_us)


def test_vector_rates_are_those_of_the_instructions_in_the_trace():
    groups = instruction_groups()
    assert {"Exp", "Ln", "Sqrt"} <= set(groups["transcendental"])
    assert "Add" in groups["simple"]
    rates = {each.group: each for each in target_sheet("910B2").vector_rates}
    assert {name: rate.instructions for name, rate in rates.items()} == groups
    assert rates["block_reduce"].elems_32bit == 64
    assert rates["repeat_reduce"].elems_32bit == pytest.approx(64 / 7)


def test_an_operator_over_rows_is_told_of_reductions_and_broadcasts():
    names = _names("softmax")
    assert {"DataCopyPad", "BlockReduceMax", "WholeReduceSum", "Brcb", "Exp", "GetValue"} <= names
    assert not {"Sort32", "Transpose", "Matmul"} & names


def test_an_operator_that_gathers_is_told_of_gathers():
    assert {"Gather", "GetValue", "DataCopyPad"} <= _names("gather")
    assert "Brcb" not in _names("muls")


@pytest.mark.parametrize(
    ("operator", "call"),
    [
        ("softmax", "SoftMax"),
        ("rms_norm", "RmsNorm"),
        ("layer_norm", "LayerNorm"),
        ("gelu", "Gelu"),
        ("dynamic_quant", "AscendQuant"),
        ("foreach_add", "ListTensorDesc"),
    ],
)
def test_calls_of_the_library_and_lists_are_told_where_they_serve(operator, call):
    assert call in _names(operator)
    assert call not in _names("embedding_bag")


def test_a_kernel_that_is_a_template_is_told_of_its_parameters():
    spec = load_operator("affine", op_dir=AFFINE)
    told = {name for call in calls_for(spec, spec.baseline) for name in call.names}
    assert "ASCENDC_TPL_SEL" in told
    assert "ASCENDC_TPL_SEL" not in _names("add")


def test_scratch_memory_is_explained_where_a_call_takes_it():
    target = target_sheet("910B2")
    with_library, without = (load_operator(name) for name in ("gelu", "add"))
    assert "Those of the library work in sharedTmpBuffer" in sheets(
        with_library, with_library.baseline, target
    )
    assert "sharedTmpBuffer" not in sheets(without, without.baseline, target)


def test_who_writes_the_tiling_program_alone_is_told_of_calls_that_the_kernel_makes():
    spec, target = load_operator("softmax"), target_sheet("910B2")
    names = {name for call in calls_for(spec, spec.baseline, Scope.TILING) for name in call.names}
    assert {"DataCopyPad", "Cast", "ReduceMax"} <= names
    assert not {"Brcb", "SoftMax", "DataCopy", "SyncAll"} & names
    text = sheets(spec, spec.baseline, target, Scope.TILING)
    assert "Calls in namespace AscendC that the kernel makes." in text
    assert "Unified buffer (UB): 192 KB" in text
    assert sheets(spec, spec.baseline, target, Scope.MARKS) == ""


def test_an_older_daemon_that_knows_less_is_not_misquoted():
    spec, target = load_operator("add"), target_sheet("910B2")
    less = target.model_copy(
        update={
            "scalar": target.scalar.model_copy(update={"data_cache_bytes": 0}),
            "copies": target.copies.model_copy(update={"write_buffer_bytes": 0.0}),
        }
    )
    text, older = (sheets(spec, spec.baseline, each) for each in (target, less))
    assert "a data cache of 32 KB in lines" in text
    assert "apart from 8 KB a core" in text
    assert "a data cache in lines" in older
    assert "apart from" not in older


def test_synchronisation_is_told_as_the_operator_is_compiled():
    spec = load_operator("gelu")
    by_hand = spec.model_copy(update={"auto_sync": False})
    target = target_sheet("910B2")
    assert "between vector instructions" in sheets(spec, spec.baseline, target)
    assert "Automatic synchronisation is off" in sheets(by_hand, spec.baseline, target)


def test_cube_cores_are_told_of_where_a_kernel_uses_them():
    spec = load_operator("gelu")
    target = target_sheet("910B2")
    assert "Mmad" not in sheets(spec, spec.baseline, target)
    kernel = spec.baseline.kernel_text + "// MatmulImpl<A, B, C>\n"
    assert "- Cube core: L1 512 KB" in sheets(spec, spec.baseline.rewritten(kernel=kernel), target)


def test_an_unknown_target_is_admitted():
    spec = load_operator("gelu")
    assert "Nothing is known of the chip" in sheets(spec, spec.baseline, None)


def test_sheets_can_be_read_past():
    spec = load_operator("gelu")
    text = sheets(spec, spec.baseline, target_sheet("910B2"))
    assert without_sheets(f"before\n{text}\n## Answer\n\nafter") == "before\n## Answer\n\nafter"
    assert without_sheets(f"before\n{text}# Task: rewrite\n") == "before\n# Task: rewrite\n"
    assert without_sheets("no sheets\n## Target tile\nstays") == "no sheets\n## Target tile\nstays"


def test_estimates_are_told_with_the_error_that_the_simulator_gives_them():
    within = re.search(r'kEstimatedWithin = "([\d.]+)"', _ESTIMATE.read_text())
    (estimates,) = (call for call in known_calls() if "Rsqrt" in call.names)
    assert f"up to {within[1]} of the value off for float and half" in estimates.notes


def test_scalar_prices_are_told_by_class():
    figures = load_chip("910B2").timing
    spec = load_operator("add")
    text = sheets(spec, spec.baseline, target_sheet("910B2"))
    assert f"takes {figures['scalar_load_cycles'].value} cycles beside waiting" in text
    assert f"a SetValue {figures['scalar_store_cycles'].value}." in text
    assert f"{figures['scalar_gm_miss_cycles'].value} more where its line is not there, " in text
    assert f"{figures['scalar_gm_stream_cycles'].value} more where the line before is" in text
    assert f"a conversion between integers and floats {figures['scalar_convert_cycles'].value}, " in text
    assert f"a division of floats {figures['scalar_float_divide_cycles'].value} " in text


def test_the_table_names_no_call_twice():
    names = [name for call in known_calls() for name in call.names]
    assert len(set(names)) == len(names)
