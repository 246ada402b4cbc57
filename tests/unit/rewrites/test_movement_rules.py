"""Rules about copies and L2: the exact change, and where they must not apply."""

import pytest
from conftest import make_candidate
from rewritten import KERNEL, in_function, kernel_after, rewrites, rule_named

COPY_PARAMETERS = "DataCopyExtParams p{1, bytes, 0, 0, 0};\nDataCopyPadExtParams<T> z{false, 0, 0, 0};\n"

# rule, body of a kernel function before, the same after the only site's first choice
KERNEL_BODIES = [
    (
        "padded_copy",
        "if (n % 16 == 0) {\n    DataCopy(y, x, n);\n} else {\n    DataCopyPad(y, x, p, z);\n}",
        "DataCopyPad(y, x, p, z);",
    ),
    (
        "padded_copy",
        "if (n % 16 == 0) {\n    DataCopy(y, x, n);\n} else {\n    "
        + COPY_PARAMETERS.replace("\n", "\n    ")
        + "DataCopyPad(y, x, p, z);\n}",
        "{\n    " + COPY_PARAMETERS.replace("\n", "\n    ") + "DataCopyPad(y, x, p, z);\n}",
    ),
    (
        "strided_copy",
        "for (int i = 0; i < rows; i++) {\n"
        "    AscendC::DataCopy(x[i * width], xGm[base + i * pitch], width);\n}",
        "AscendC::DataCopyPad(x, xGm[base], AscendC::DataCopyExtParams(static_cast<uint16_t>(rows), "
        "static_cast<uint32_t>(width * sizeof(x.GetValue(0))), "
        "static_cast<uint32_t>(pitch * sizeof(xGm.GetValue(0)) - width * sizeof(x.GetValue(0))), "
        "static_cast<uint32_t>((width * sizeof(x.GetValue(0)) - "
        "(width * sizeof(x.GetValue(0)) + 31) / 32 * 32) / 32), 0), "
        "AscendC::DataCopyPadExtParams<decltype(xGm.GetValue(0))>(false, 0, 0, 0));",
    ),
    (
        "strided_copy",
        "DataCopyExtParams p{static_cast<uint16_t>(1), 96, 0, 0, 0};\n"
        "for (int i = 0; i < rows; i++) {\n    DataCopyPad(yGm[(top + i) * (w + 8)], y[i * 32], p);\n}",
        "DataCopyExtParams p{static_cast<uint16_t>(1), 96, 0, 0, 0};\n"
        "DataCopyPad(yGm[top * (w + 8)], y, DataCopyExtParams(static_cast<uint16_t>(rows), "
        "static_cast<uint32_t>(p.blockLen), "
        "static_cast<uint32_t>((32 * sizeof(y.GetValue(0)) - (p.blockLen + 31) / 32 * 32) / 32), "
        "static_cast<uint32_t>((w + 8) * sizeof(yGm.GetValue(0)) - p.blockLen), 0));",
    ),
    (
        "strided_copy",
        "for (int i = 0; i < rows; i++) {\n    uint64_t at = top + i * w;\n"
        "    DataCopyPad(yGm[at], y[i * 32], {1, 96, 0, 0, 0});\n}",
        "DataCopyPad(yGm[top], y, DataCopyExtParams(static_cast<uint16_t>(rows), "
        "static_cast<uint32_t>(96), "
        "static_cast<uint32_t>((32 * sizeof(y.GetValue(0)) - (96 + 31) / 32 * 32) / 32), "
        "static_cast<uint32_t>(w * sizeof(yGm.GetValue(0)) - 96), 0));",
    ),
    (
        "strided_copy",
        "for (int i = 0; i < rows; i++) {\n    this->at = i * 8;\n"
        "    DataCopyPad(yGm[top + this->at], y[i * 8], {1, 32, 0, 0, 0});\n}",
        "DataCopyPad(yGm[top], y, DataCopyExtParams(static_cast<uint16_t>(rows), "
        "static_cast<uint32_t>(32), "
        "static_cast<uint32_t>((8 * sizeof(y.GetValue(0)) - (32 + 31) / 32 * 32) / 32), "
        "static_cast<uint32_t>(8 * sizeof(yGm.GetValue(0)) - 32), 0));\nthis->at = (rows - 1) * 8;",
    ),
    (
        "row_copies",
        "DataCopyExtParams p{rows, 96, gap, 0, 0};\nDataCopyPad(x, xGm[i], p, z);",
        "DataCopyExtParams p{rows, 96, gap, 0, 0};\nfor (uint32_t row = 0; row < p.blockCount; row++) {\n"
        "    DataCopyPad(x[row * (((96 + 31) / 32 + 0) * 32 / sizeof(x.GetValue(0)))], "
        "xGm[i][row * ((96 + p.srcStride) / sizeof(xGm[i].GetValue(0)))], "
        "DataCopyExtParams(1, 96, 0, 0, 0), z);\n}",
    ),
    (
        "l2_bypass",
        "this->xGm.SetGlobalBuffer((__gm__ T*)x, n);",
        "this->xGm.SetGlobalBuffer((__gm__ T*)x, n);\n"
        "this->xGm.SetL2CacheHint(AscendC::CacheMode::CACHE_MODE_DISABLE);",
    ),
    (
        "l2_bypass",
        "xGm.SetGlobalBuffer(x);\nxGm.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);",
        "xGm.SetGlobalBuffer(x);",
    ),
    (
        "aligned_copy",
        "DataCopyPad(yGm[i], y, {1, (uint32_t)(n * 4), 0, 0, 0});",
        "if (((uint32_t)(n * 4)) % 32 == 0) {\n"
        "    DataCopy(yGm[i], y, DataCopyParams(1, static_cast<uint16_t>(((uint32_t)(n * 4)) / 32), 0, 0));\n"
        "} else {\n    DataCopyPad(yGm[i], y, {1, (uint32_t)(n * 4), 0, 0, 0});\n}",
    ),
    (
        "aligned_copy",
        COPY_PARAMETERS + "A::DataCopyPad(x, xGm, p, z);",
        COPY_PARAMETERS + "if (p.blockLen % 32 == 0) {\n"
        "    A::DataCopy(x, xGm, A::DataCopyParams(1, static_cast<uint16_t>(p.blockLen / 32), 0, 0));\n"
        "} else {\n    A::DataCopyPad(x, xGm, p, z);\n}",
    ),
    (  # the declaration that holds is the one of the block
        "aligned_copy",
        "{\n    DataCopyExtParams p{1, 64, 0, 0, 0};\n    DataCopyPad(yGm, y, p);\n}\n"
        "{\n    DataCopyExtParams p{1, 96, 0, 0, 0};\n}",
        "{\n    DataCopyExtParams p{1, 64, 0, 0, 0};\n"
        "    if (64 % 32 == 0) {\n"
        "        DataCopy(yGm, y, DataCopyParams(1, static_cast<uint16_t>(64 / 32), 0, 0));\n"
        "    } else {\n        DataCopyPad(yGm, y, p);\n    }\n}\n"
        "{\n    DataCopyExtParams p{1, 96, 0, 0, 0};\n}",
    ),
    (  # and the initial value that of its own variable
        "aligned_copy",
        "DataCopyExtParams a{1, 96, 0, 0, 0}, p{1, 64, 0, 0, 0};\nDataCopyPad(yGm, y, p);",
        "DataCopyExtParams a{1, 96, 0, 0, 0}, p{1, 64, 0, 0, 0};\n"
        "if (64 % 32 == 0) {\n"
        "    DataCopy(yGm, y, DataCopyParams(1, static_cast<uint16_t>(64 / 32), 0, 0));\n"
        "} else {\n    DataCopyPad(yGm, y, p);\n}",
    ),
    *(
        (  # what may have changed is read when the copy runs
            "aligned_copy",
            f"DataCopyExtParams p{{1, 64, 0, 0, 0}};\n{change}\nDataCopyPad(yGm, y, p);",
            f"DataCopyExtParams p{{1, 64, 0, 0, 0}};\n{change}\n"
            "if (p.blockLen % 32 == 0 && p.dstStride % 32 == 0 && p.dstStride / 32 <= 65535) {\n"
            "    DataCopy(yGm, y, DataCopyParams(static_cast<uint16_t>(p.blockCount), "
            "static_cast<uint16_t>(p.blockLen / 32), static_cast<uint16_t>(p.srcStride), "
            "static_cast<uint16_t>(p.dstStride / 32)));\n} else {\n    DataCopyPad(yGm, y, p);\n}",
        )
        for change in (
            "p = DataCopyExtParams{1, 96, 0, 0, 0};",
            "Adapt(p);",
            "Adapt(p.blockLen);",
            "auto& q = p;",
            "p.blockLen = 96;",
            "p.blockLen++;",
            "auto* q = &p;",
        )
    ),
    (
        "aligned_copy",
        "p.srcStride = rest;\nDataCopyPad(x, xGm, p, z);",
        "p.srcStride = rest;\n"
        "if (p.blockLen % 32 == 0 && p.srcStride % 32 == 0 && p.srcStride / 32 <= 65535 && "
        "z.leftPadding == 0 && z.rightPadding == 0) {\n"
        "    DataCopy(x, xGm, DataCopyParams(static_cast<uint16_t>(p.blockCount), "
        "static_cast<uint16_t>(p.blockLen / 32), static_cast<uint16_t>(p.srcStride / 32), "
        "static_cast<uint16_t>(p.dstStride)));\n} else {\n    DataCopyPad(x, xGm, p, z);\n}",
    ),
]


@pytest.mark.parametrize(("name", "before", "after"), KERNEL_BODIES)
def test_movement_rule_makes_exactly_this_change(name, before, after):
    assert kernel_after(name, in_function(before)) == in_function(after)


NOT_HERE = [
    ("padded_copy", "if (n > 0) {\n    DataCopy(y, x, n);\n} else {\n    DataCopyPad(y, x, p, z);\n}"),
    (
        "padded_copy",
        "if (n % 16 == 0) {\n    DataCopy(y, x, n);\n    Step();\n} else {\n    DataCopyPad(y, x, p, z);\n}",
    ),
    *(
        ("strided_copy", f"for (int i = {start}; i < rows; i++) {{\n    {body}\n}}")
        for start, body in (
            ("1", "DataCopy(x[i * 8], xGm[i * w], 8);"),
            ("0", "DataCopy(x[i * 8], y[i * 8], 8);"),  # which of them is in GM?
            ("0", "DataCopy(x[i * 8], xGm[i * i], 8);"),
            ("0", "DataCopy(x[i * 8], xGm[i * w], i);"),
            ("0", "DataCopy(x[i * 8], xGm[0], 8);"),
            ("0", "DataCopy(x[i * 8], xGm[i * w], copyParams);"),
            ("0", "DataCopy(x[i * 8], xGm[i * w], 8);\n    Step();"),
            ("0", "at += w;\n    DataCopyPad(yGm[at], y[i * 8], {1, 32, 0, 0, 0});"),
            ("0", "at = i * w;\n    DataCopyPad(yGm[at], y[i * 8], {1, at, 0, 0, 0});"),
            ("0", "DataCopyPad(yGm[i * w], y[i * 8], unknown);"),
            ("0", "DataCopyPad(yGm[i * w], y[i * 8], {4, 32, 0, 0, 0});"),
        )
    ),
    ("row_copies", "DataCopyPad(y, x, {1, n, 0, 0, 0});\nDataCopyPad(y, x, {rows, n, 0, 0});"),
    ("l2_bypass", "if (x)\n    xGm.SetGlobalBuffer(x);"),
    ("aligned_copy", "if (n % 16 == 0) {\n    DataCopy(y, x, n);\n} else {\n    DataCopyPad(y, x, p, z);\n}"),
    ("aligned_copy", "DataCopyPad(x, xGm, p, {true, 0, pad, 0});"),
    ("aligned_copy", "DataCopy(x, xGm, n);"),
]


@pytest.mark.parametrize(("name", "body"), NOT_HERE)
def test_movement_rule_leaves_other_code_alone(name, body):
    assert rule_named(name).sites(make_candidate("", in_function(body))) == []


def test_all_tensors_pass_by_l2_at_once_and_come_back_at_once():
    kernel = in_function("xGm.SetGlobalBuffer(x);\nyGm.SetGlobalBuffer(y);")
    bypassed = rewrites(rule_named("l2_bypass"), kernel=kernel)[-1][2][KERNEL]
    assert bypassed.count("CACHE_MODE_DISABLE") == 2
    assert rewrites(rule_named("l2_bypass"), kernel=bypassed)[-1][2][KERNEL] == kernel
