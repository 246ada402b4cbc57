from __future__ import annotations

from pathlib import Path

import pytest
from suite_folders import MANIFEST, REFERENCE, write_operator

from ascend_gym.suite.audit import audit_case
from ascend_gym.suite.loader import load_operator


def complaints(folder: Path, **changes: str) -> str:
    spec = load_operator("twice", op_dir=write_operator(folder, **changes))
    return "\n".join(audit_case(spec, spec.cases[0], 0))


def test_a_sound_case_has_no_complaints(tmp_path: Path) -> None:
    assert complaints(tmp_path) == ""


@pytest.mark.parametrize(
    ("tolerance", "accepted"),
    [
        ("atol = 1e-6\nrtol = 2e-3", ["float16 precision"]),
        ("atol = 1e-6\nrtol = 0.2", ["3 significant bits", "float16 precision"]),
        (
            "atol = 20.0\nrtol = 0.0",
            ["a copy of input x", "a permutation", "second half", "significant bits", "one core", "one row"],
        ),
        ("atol = 1.0\nrtol = 0.0\nmax_bad_share = 0.99", ["a copy of input x", "second half left at zero"]),
    ],
)
def test_what_a_wide_tolerance_accepts_is_named(tmp_path: Path, tolerance: str, accepted: list[str]) -> None:
    text = complaints(tmp_path, manifest=MANIFEST.replace("atol = 1e-6\nrtol = 1e-5", tolerance))
    for name in accepted:
        assert name in text
    assert all("local/twice, case 'small': " in line for line in text.splitlines())


def test_a_tolerance_below_the_rounding_of_the_output_is_named(tmp_path: Path) -> None:
    manifest = MANIFEST.replace("float32", "float16").replace(
        "atol = 1e-6\nrtol = 1e-5", "atol = 0\nrtol = 0"
    )
    reference = REFERENCE.replace('inputs["x"]', 'inputs["x"].astype("float64") / 3.0')
    assert "the reference itself is rejected" in complaints(tmp_path, manifest=manifest, reference=reference)


def test_inputs_that_no_seed_changes_are_named(tmp_path: Path) -> None:
    manifest = MANIFEST.replace("low = -2.0, high = 3.0", "low = 3.0, high = 3.0")
    assert "another seed gives the same inputs" in complaints(tmp_path, manifest=manifest)


def test_a_corruption_that_equals_the_expectation_is_no_complaint(tmp_path: Path) -> None:
    identity = 'def reference(inputs, attributes):\n    return {"y": inputs["x"]}\n'
    assert complaints(tmp_path, reference=identity) == ""


def test_a_case_that_any_output_satisfies_in_part_is_named_with_the_output(tmp_path: Path) -> None:
    second = MANIFEST[MANIFEST.index("[[case.output]]") :].replace('"y"', '"z"').replace("float32", "float16")
    manifest = (
        MANIFEST.replace("[[case]]", "[tolerance.float16]\natol = 20.0\nrtol = 0.0\n\n[[case]]") + second
    )
    reference = 'def reference(inputs, attributes):\n    return {"y": inputs["x"] * 2, "z": inputs["x"]}\n'
    text = complaints(tmp_path, manifest=manifest, reference=reference)
    assert "an output with its second half left at zero is accepted as correct as z" in text
    assert "as y" not in text


def test_an_open_output_is_not_audited(tmp_path: Path) -> None:
    second = MANIFEST[MANIFEST.index("[[case.output]]") :].replace('"y"', '"z"') + "open = true\n"
    reference = 'def reference(inputs, attributes):\n    return {"y": inputs["x"] * 2}\n'
    assert complaints(tmp_path, manifest=MANIFEST + second, reference=reference) == ""


def test_what_a_sample_of_the_elements_does_not_show_is_found(tmp_path: Path) -> None:
    large = MANIFEST.replace("[4, 5]", "[400, 500]").replace(
        "atol = 1e-6\nrtol = 1e-5", "atol = 4e-6\nrtol = 1e-5\nmax_bad_share = 0.5"
    )
    reference = 'def reference(inputs, attributes):\n    return {"y": inputs["x"] * 1e-6 + 1e-6}\n'
    text = complaints(tmp_path, manifest=large, reference=reference)
    assert "an output of zeros is accepted" not in text  # constant where the expectation varies
    assert "a permutation of the expected output is accepted as correct" in text
