"""Sources of operators in a small checkout that is written here: shared files, virtual paths, main files."""

from __future__ import annotations

from pathlib import Path

from suite_folders import KERNEL, OP_DEF, write_files

from ascend_gym.suite.cann_sources import checkout_root, read_build_file, read_cann_candidate

CMAKE = """
# target_sources(optiling PRIVATE op_host/commented_out.cpp)
add_ops_compile_options(OP_NAME Twice OPTIONS -I${OP_COMMON_DIR}/inc/math/op_kernel --cce-auto-sync=off)
target_sources(op_host_aclnnInner PRIVATE op_host/twice_def.cpp)
target_sources(optiling PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR}/op_host/twice.cpp
    ${OP_COMMON_DIR}/src/shared_tiling.cpp
    ${EXTRA_SRC_FILES}
)
target_sources(opapi PRIVATE op_host/aclnn_twice.cpp)
target_include_directories(optiling PRIVATE
    ${CMAKE_SOURCE_DIR}/src/common/inc ${ASCEND_CANN_PACKAGE_PATH}/include)
"""


def write_checkout(root: Path, **changes: str) -> Path:
    """Write a checkout with the operator ``twice`` and return the operator's folder."""
    write_files(
        root,
        {
            "src/common/inc/log/ops_log.h": "// logging\n",
            "src/common/inc/error/ops_error.h": '#include "log/ops_log.h"\n#include "inner/dfx.h"\n',
            "src/common/inc/error/inner/dfx.h": changes.get("shared", "#define LOG(x)\n"),
            "src/common/inc/math/op_kernel/base.h": "// kernel base\n",
            "src/common/inc/unused.h": "// unused\n",
            "src/common/src/shared_tiling.cpp": "int shared_tiling() { return 1; }\n",
            "src/math/other/op_host/table.h": "// of another operator\n",
            "src/math/twice/CMakeLists.txt": changes.get("cmake", CMAKE),
            "src/math/twice/op_host/twice.cpp": '#include "error/ops_error.h"\n#include "twice_tiling.h"\n'
            '#include "../../other/op_host/table.h"\n// gert::TilingContext\nIMPL_OP_OPTILING(Twice)\n',
            "src/math/twice/op_host/twice_def.cpp": OP_DEF,
            "src/math/twice/op_host/twice_tiling.h": "#pragma once\n",
            "src/math/twice/op_host/aclnn_twice.cpp": "// API layer\n",
            "src/math/twice/op_kernel/twice.cpp": '#include "base.h"\n#include "kernel_operator.h"\n'
            + KERNEL,
            "src/math/twice/op_kernel/tables.cpp": "int tables;\n",
        },
    )
    return root / "src/math/twice"


def test_the_build_file_names_sources_folders_and_options(tmp_path: Path) -> None:
    folder = write_checkout(tmp_path)
    build = read_build_file(folder)
    assert (build.op_type, build.auto_sync) == ("Twice", False)
    common = tmp_path / "src/common"
    assert build.tiling == (folder / "op_host/twice.cpp", common / "src/shared_tiling.cpp")
    assert build.definition == (folder / "op_host/twice_def.cpp",)
    assert set(build.include_dirs) == {common / "inc", common / "inc/math/op_kernel"}
    assert checkout_root(folder) == tmp_path


def test_a_candidate_holds_what_is_built_and_what_that_includes(tmp_path: Path) -> None:
    folder = write_checkout(tmp_path)
    candidate = read_cann_candidate(folder, read_build_file(folder))
    assert [file.path for file in candidate.host.files] == [
        "op_host/twice.cpp",
        "shared/src/common/src/shared_tiling.cpp",
        "op_host/twice_def.cpp",
        "shared/src/common/inc/error/ops_error.h",
        "op_host/twice_tiling.h",
        "shared/src/math/other/op_host/table.h",
        "shared/src/common/inc/error/inner/dfx.h",
    ]
    assert candidate.host.main == "op_host/twice.cpp"
    assert [file.path for file in candidate.kernel.files] == [
        "op_kernel/tables.cpp",
        "op_kernel/twice.cpp",
        "shared/src/common/inc/math/op_kernel/base.h",
    ]
    assert candidate.kernel.main == "op_kernel/twice.cpp"


def test_a_change_of_a_shared_file_changes_the_digest(tmp_path: Path) -> None:
    digests = set()
    for text in ("#define LOG(x)\n", "#define LOG(x) x\n"):
        folder = write_checkout(tmp_path, shared=text)
        digests.add(read_cann_candidate(folder, read_build_file(folder)).digest)
    assert len(digests) == 2


def test_an_operator_without_a_build_file_has_the_sources_of_its_folder(tmp_path: Path) -> None:
    folder = write_checkout(tmp_path, cmake="")
    build = read_build_file(folder)
    assert (build.op_type, build.tiling, build.auto_sync) == (None, (), True)
    paths = {file.path for file in read_cann_candidate(folder, build).host.files}
    assert paths == {"op_host/twice.cpp", "op_host/twice_def.cpp", "op_host/twice_tiling.h"}


def test_shared_tiling_is_the_main_file_of_an_operator_without_its_own(tmp_path: Path) -> None:
    cmake = CMAKE.replace("${CMAKE_CURRENT_SOURCE_DIR}/op_host/twice.cpp", "")
    folder = write_checkout(tmp_path, cmake=cmake)
    candidate = read_cann_candidate(folder, read_build_file(folder))
    assert candidate.host.main == "shared/src/common/src/shared_tiling.cpp"
