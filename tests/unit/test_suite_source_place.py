"""Cases of one's own for an operator of a checkout: a manifest that says where the sources lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from suite_folders import KERNEL, MANIFEST, OP_DEF, REFERENCE, write_files

from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.suite.imported import register
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for

SOURCES = {
    "src/common/inc/shared.h": "// shared\n",
    "src/math/twice/CMakeLists.txt": (
        "target_sources(optiling PRIVATE op_host/tiling.cpp)\n"
        "add_ops_compile_options(OP_NAME Twice OPTIONS --cce-auto-sync=off)\n"
    ),
    "src/math/twice/op_host/tiling.cpp": (
        '#include "shared.h"\n// gert::TilingContext\nIMPL_OP_OPTILING(Twice)\n'
    ),
    "src/math/twice/op_host/definition.cpp": OP_DEF,
    "src/math/twice/op_kernel/twice.cpp": KERNEL,
}
ELSEWHERE = MANIFEST.replace("level = 1", 'level = 1\nsources = "cann-ops:math/twice"')


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an imported checkout with one operator."""
    monkeypatch.setenv("ASCEND_GYM_CACHE", str(tmp_path / "cache"))
    root = write_files(tmp_path / "cann-ops", SOURCES)
    register(root, {"twice": ""})
    return root


def written(folder: Path, manifest: str) -> Path:
    return write_files(folder, {"op.toml": manifest, "reference.py": REFERENCE})


def test_sources_come_from_the_checkout_and_cases_from_the_manifest(tmp_path: Path, checkout: Path) -> None:
    spec = load_operator("twice", op_dir=written(tmp_path / "mine", ELSEWHERE))
    assert [case.case_id for case in spec.cases] == ["small"]
    assert not spec.auto_sync
    assert "shared/src/common/inc/shared.h" in {file.path for file in spec.baseline.host.files}
    oracle = oracle_for(spec)
    ((y,),) = oracle.expected(spec.cases[0], oracle.inputs(spec.cases[0], 0))
    assert y.shape == (4, 5)
    (checkout / "src/math/twice/op_kernel/twice.cpp").write_text(KERNEL + "// changed\n")
    with pytest.raises(MisuseError, match="changed since"):
        oracle_for(spec)


def test_the_digest_of_the_sources_is_checked(tmp_path: Path, checkout: Path) -> None:
    digest = load_operator("twice", op_dir=written(tmp_path / "mine", ELSEWHERE)).baseline.digest
    for wanted, fits in ((digest[:12], True), ("0" * 12, False)):
        text = ELSEWHERE.replace("level = 1", f'level = 1\nsources_digest = "{wanted}"')
        folder = written(tmp_path / wanted, text)
        if fits:
            assert load_operator("twice", op_dir=folder).baseline.digest == digest
            continue
        with pytest.raises(
            OperatorFormatError, match=f"have the digest {digest[:16]}, sources_digest says 0000"
        ):
            load_operator("twice", op_dir=folder)


def test_the_digest_is_checked_where_the_manifest_names_the_main_files(
    tmp_path: Path, checkout: Path
) -> None:
    named = f'level = 1\ntiling = "op_host/tiling.cpp"\nsources_digest = "{"0" * 12}"'
    with pytest.raises(OperatorFormatError, match="sources_digest says 0000"):
        load_operator("twice", op_dir=written(tmp_path / "mine", ELSEWHERE.replace("level = 1", named)))


def test_what_is_not_there_is_told(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "mine", ELSEWHERE.replace("math/twice", "math/thrice"))
    with pytest.raises(OperatorFormatError, match="has no op_host and op_kernel"):
        load_operator("twice", op_dir=folder)
    monkeypatch.setenv("ASCEND_GYM_CACHE", str(tmp_path / "empty"))
    with pytest.raises(OperatorFormatError, match="ascend-gym suite import --cann-ops DIR"):
        load_operator("twice", op_dir=folder)
