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
        ("shape = [4, 5]\nvalues", "shape = [4, -5]\nvalues", "input.0.shape.1", "equal to 0"),
        ("atol = 1e-6", "atol = inf", "tolerance.float32.atol", "finite number"),
        ("high = 3.0", "high = 1e39", "case.0.input.0", "float32 has no numbers beyond"),
        ('id = "small"', 'id = "../small"', "case.0.id", "match pattern"),
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
        ("float32", "low = nan", "low and high are finite, got nan"),
        ("float32", 'kind = "normal", low = 0.0, high = inf', "low and high are finite"),
        ("int8", 'kind = "integers", low = 0, high = 300', "int8 cannot hold 300"),
        ("int4", 'kind = "integers", low = -8, high = 8', "int4 cannot hold 8"),
        ("int32", "inject = [{ value = nan, share = 0.1 }]", "int32 cannot hold nan"),
        ("float32", 'kind = "fixed"', "as many 'contents' as the tensor has elements (20)"),
        ("float32", 'kind = "fixed", contents = [1, 2]', "(20), or one for all; got 2"),
        ("float32", "contents = [1]", "belongs to kind = 'fixed'"),
        ("float32", 'kind = "file", file = "../x.npy"', "lies below data/"),
        ("float32", 'kind = "file", file = "data/x.txt"', "ends in .npy or .bin"),
        ("float32", 'kind = "permutation", distinct = 3', "'distinct' belongs to kinds"),
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


@pytest.mark.parametrize("dtype", ["uint8", "bool", "uint32"])
def test_whole_numbers_without_sign_are_zero_and_one_by_default(tmp_path: Path, dtype: str) -> None:
    old = 'dtype = "float32"\nshape = [4, 5]\nvalues = { kind = "uniform", low = -2.0, high = 3.0 }'
    (case,) = read(tmp_path, MANIFEST.replace(old, f'dtype = "{dtype}"\nshape = [4, 5]')).cases()
    values = case.inputs[0].values
    assert (values.kind, values.low, values.high) == ("integers", 0.0, 1.0)


def test_a_case_may_have_no_inputs(tmp_path: Path) -> None:
    start, end = MANIFEST.index("[[case.input]]"), MANIFEST.index("[[case.output]]")
    assert read(tmp_path, MANIFEST[:start] + MANIFEST[end:]).cases()[0].inputs == ()


def test_another_version_of_the_format_is_refused(tmp_path: Path) -> None:
    assert read(tmp_path, "format = 1\n" + MANIFEST).format == 1
    assert "reads format 1, got 2" in complaint(tmp_path, "format = 2\n" + MANIFEST)


def test_names_that_occur_twice_are_refused(tmp_path: Path) -> None:
    second = MANIFEST[MANIFEST.index("[[case.output]]") :]
    assert "output of case 'small': y occurs more than once" in complaint(tmp_path, MANIFEST + second)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("low = -2.0", "lowest = -2.0", "values = "),
        ("low = -2.0", "low = nan", "values = "),
        ("[operator]", "format = 2\n[operator]", "format = 2"),
        ("level = 1", "level = 4", "level = 4"),
        ("atol = 1e-6", "mtol = 1e-6", "mtol"),
        ('name = "y"\ndtype = "float32"', 'name = "y"\ndtype = "half"', 'dtype = "half"'),
    ],
)
def test_the_line_of_a_mistake_is_named(tmp_path: Path, old: str, new: str, line: str) -> None:
    text = MANIFEST.replace(old, new)
    (number,) = (n for n, each in enumerate(text.splitlines(), 1) if line in each)
    assert f"op.toml:{number}: " in complaint(tmp_path, text)


def test_the_line_of_a_mistake_in_a_listing_is_named(tmp_path: Path) -> None:
    start, end = MANIFEST.index("[[case.input]]"), MANIFEST.index("[[case.output]]")
    listing = (
        'output = [\n  { name = "y", dtype = "float32", shape = [4] },\n  { name = "z", shape = [4] },\n]\n'
    )
    text = MANIFEST[:start] + listing + MANIFEST[start:end]
    line = text[: text.index('"z"')].count("\n") + 1
    assert f"op.toml:{line}: case.0.output.1.dtype: Field required" in complaint(tmp_path, text)
