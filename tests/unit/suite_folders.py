"""Writes small operator folders for the suite tests."""

from __future__ import annotations

from pathlib import Path

HOST = """
static ge::graphStatus TilingFunc(gert::TilingContext* context) { return ge::GRAPH_SUCCESS; }
"""
KERNEL = """
extern "C" __global__ __aicore__ void twice(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {}
"""
MANIFEST = """
[operator]
type = "Twice"
level = 1
category = "elementwise"
description = "Twice its input"

[tolerance.float32]
atol = 1e-6
rtol = 1e-5

[[case]]
id = "small"
attributes = { axis = -1, scale = 2.0, dims = [1, 2] }

[[case.input]]
name = "x"
dtype = "float32"
shape = [4, 5]
values = { kind = "uniform", low = -2.0, high = 3.0 }

[[case.output]]
name = "y"
dtype = "float32"
shape = [4, 5]
"""
REFERENCE = """
def reference(inputs, attributes):
    return {"y": inputs["x"] * attributes["scale"]}
"""


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """Write text files below ``folder`` and return it."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder


def write_operator(folder: Path, **changes: str) -> Path:
    """Write the operator ``twice``; keyword arguments replace its manifest, reference, host or kernel."""
    return write_files(
        folder,
        {
            "op.toml": changes.get("manifest", MANIFEST),
            "reference.py": changes.get("reference", REFERENCE),
            "op_host/twice.cpp": changes.get("host", HOST),
            "op_kernel/twice.cpp": changes.get("kernel", KERNEL),
        },
    )


OP_DEF = """
namespace optiling { static ge::graphStatus TilingFunc(gert::TilingContext* context) { return 0; } }
namespace ops {
class Twice : public OpDef { // this->Input("commented_out").DataType({ge::DT_INT8});
public:
    explicit Twice(const char* name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
        this->Input("bias").ParamType(OPTIONAL).DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
        this->Attr("scale").AttrType(REQUIRED).Float();
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
    }
};
OP_ADD(Twice);
}
"""
MAIN_CPP = """
#include <fstream>
#include <vector>
#include "acl/acl.h"
#include "aclnn_twice.h"

template <typename T>
aclTensor* Tensor(const std::vector<T>& data, const std::vector<int64_t>& shape, aclDataType type,
                  void** device)
{
    size_t size = data.size() * sizeof(T);
    aclrtMalloc(device, size, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(*device, size, data.data(), size, ACL_MEMCPY_HOST_TO_DEVICE);
    return aclCreateTensor(shape.data(), shape.size(), type, nullptr, 0, ACL_FORMAT_ND, shape.data(),
                           shape.size(), *device);
}

int main() {
    std::vector<int64_t> xShape = {4, 8};
    std::vector<float> xData(32), yData(32);
    std::ifstream("../input/input_x.bin", std::ios::binary).read((char*)xData.data(), 32 * 4);
    float scale = 2.0f;
    void *xDevice, *yDevice;
    aclTensor* x = Tensor(xData, xShape, ACL_FLOAT, &xDevice);
    aclTensor* y = Tensor(yData, xShape, ACL_FLOAT, &yDevice);
    uint64_t workspaceSize = 0;
    aclOpExecutor* executor;
    int ret = aclnnTwiceGetWorkspaceSize(x, nullptr, scale, y, &workspaceSize, &executor);
    ret = aclnnTwice(nullptr, workspaceSize, executor, nullptr);
    aclrtMemcpy(yData.data(), 32 * 4, yDevice, 32 * 4, ACL_MEMCPY_DEVICE_TO_HOST);
    std::ofstream("../output/output_y.bin", std::ios::binary).write((char*)yData.data(), 32 * 4);
    return ret;
}
"""
GEN_DATA = """
import os
import torch
import numpy as np

x = np.random.uniform(-1, 1, [4, 8]).astype(np.float32)
os.system("mkdir -p input output")
x.tofile("./input/input_x.bin")
(x * np.float32(2.0)).tofile("./output/golden.bin")
"""
VERIFY_RESULT = "LOSS = 1e-4 # allowed\n"
CMAKE = "add_ops_compile_options(OP_NAME Twice OPTIONS --cce-auto-sync=off -Wno-deprecated)\n"


def write_example_operator(folder: Path, **changes: str) -> Path:
    """Write the operator ``twice`` in the form of a cann-ops folder; keyword arguments replace its files."""
    example = "examples/AclNNInvocationNaive"
    return write_files(
        folder,
        {
            "CMakeLists.txt": changes.get("cmake", CMAKE),
            "op_host/twice.cpp": changes.get("host", OP_DEF),
            "op_kernel/twice.cpp": changes.get("kernel", KERNEL),
            f"{example}/main.cpp": changes.get("main", MAIN_CPP),
            f"{example}/gen_data.py": changes.get("gen_data", GEN_DATA),
            f"{example}/verify_result.py": changes.get("verify", VERIFY_RESULT),
        },
    )
