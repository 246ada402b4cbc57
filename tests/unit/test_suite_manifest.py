from __future__ import annotations

from pathlib import Path

import pytest
from suite_folders import MANIFEST

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import DType
from ascend_gym.suite.manifest import Manifest, read_manifest


def read(tmp_path: Path, text: str) -> Manifest:
    path = tmp_path / "op.toml"
    path.write_text(text, encoding="utf-8")
    return read_manifest(path)


def complaint(tmp_path: Path, text: str) -> str:
    with pytest.raises(OperatorFormatError) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "op.toml") in str(caught.value)
    return str(caught.value)


def test_a_case_carries_shapes_values_attributes_and_tolerance(tmp_path: Path) -> None:
    (case,) = read(tmp_path, MANIFEST).cases()
    (x,) = case.inputs
    assert (x.name, x.dtype, x.shapes, x.dynamic) == ("x", DType.FLOAT32, ((4, 5),), False)
    assert (x.values.kind, x.values.low, x.values.high) == ("uniform", -2.0, 3.0)
    assert case.attributes == {"axis": -1, "scale": 2.0, "dims": (1, 2)}
    assert isinstance(case.attributes["axis"], int)
    assert isinstance(case.attributes["scale"], float)
    assert case.tolerance[DType.FLOAT32].rtol == 1e-5
    assert case.tolerance[DType.FLOAT32].max_bad_share == 0.0


def test_shapes_make_a_list_parameter(tmp_path: Path) -> None:
    (case,) = read(tmp_path, MANIFEST.replace("shape = [4, 5]", "shapes = [[4], [5, 6]]")).cases()
    assert case.inputs[0].dynamic
    assert case.inputs[0].shapes == ((4,), (5, 6))


def test_an_optional_input_may_be_absent(tmp_path: Path) -> None:
    text = MANIFEST.replace("[[case.output]]", "optional_absent = true\n\n[[case.output]]")
    assert read(tmp_path, text).cases()[0].inputs[0].optional_absent


@pytest.mark.parametrize(
    ("old", "new", "key", "reason"),
    [
        ("level = 1", "level = 1\nspeed = 3", "operator.speed", "unknown key; known are type, level, "),
        ("level = 1", "level = 1\nauto_snyc = true", "operator.auto_snyc", "did you mean 'auto_sync'?"),
        ("atol = 1e-6", "atol = 1e-6\nmtol = 1", "tolerance.float32.mtol", "unknown key"),
        ("low = -2.0", "lowest = -2.0", "case.0.input.0.values.lowest", "did you mean 'low'?"),
        ("level = 1", "level = 4", "operator.level", "less than or equal to 3"),
        ('type = "Twice"\n', "", "operator.type", "required"),
        ('"float32"\nshape = [4, 5]\nvalues', '"half"\nshape = [4, 5]\nvalues', "dtype", "'float16'"),
        ("shape = [4, 5]\nvalues", "values", "case.0.input.0", "exactly one of 'shape'"),
        ("shape = [4, 5]\nvalues", "shape = [4, 5]\nshapes = [[4]]\nvalues", "input.0", "exactly one of"),
        ("shape = [4, 5]\nvalues", "shape = [4, -5]\nvalues", "", "negative extent"),
        ("low = -2.0, high = 3.0", "low = 4.0, high = 3.0", "input.0", "no number lies in [4.0, 3.0]"),
        ("[tolerance.float32]", "[tolerance.float16]", "", "[tolerance.float32]"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, key: str, reason: str) -> None:
    assert old in MANIFEST
    message = complaint(tmp_path, MANIFEST.replace(old, new))
    assert key in message
    assert "at least 1 item" not in message
    assert reason in message


@pytest.mark.parametrize(
    ("dtype", "values", "reason"),
    [
        ("int32", 'kind = "integers", low = 0.2, high = 0.8', "no whole number"),
        ("int32", 'kind = "normal", low = 0.0, high = 1.0', "needs a floating dtype"),
        ("float32", 'kind = "normal", low = 0.0, high = 0.0', "positive deviation"),
        ("uint8", 'kind = "integers", low = -1, high = 3', "uint8 cannot hold"),
        ("float32", 'kind = "cauchy"', "kind"),
    ],
)
def test_values_that_cannot_be_drawn_are_refused(
    tmp_path: Path, dtype: str, values: str, reason: str
) -> None:
    old = 'dtype = "float32"\nshape = [4, 5]\nvalues = { kind = "uniform", low = -2.0, high = 3.0 }'
    assert old in MANIFEST
    new = f'dtype = "{dtype}"\nshape = [4, 5]\nvalues = {{ {values} }}'
    assert reason in complaint(tmp_path, MANIFEST.replace(old, new))


def test_text_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    assert "cannot be read as TOML" in complaint(tmp_path, "[operator\n")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorFormatError, match="cannot be read"):
        read_manifest(tmp_path / "op.toml")
