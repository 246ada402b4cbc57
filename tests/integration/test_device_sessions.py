"""The reader of recorded sessions: replayed files, verdicts, times, bad files, and versions that run."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ascend_gym.core.errors import MisuseError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "fidelity"
ROOT = "/home/agent/out/7_Twice/kernel"
KERNEL = """#include "kernel_operator.h"
constexpr int32_t DEPTH = 1;
extern "C" __global__ __aicore__ void twice(GM_ADDR x, GM_ADDR y, int32_t length) {
    AscendC::GlobalTensor<float> from, to;
    from.SetGlobalBuffer((__gm__ float *)x + AscendC::GetBlockIdx() * length);
    to.SetGlobalBuffer((__gm__ float *)y + AscendC::GetBlockIdx() * length);
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, DEPTH> in;
    AscendC::TQue<AscendC::TPosition::VECOUT, DEPTH> out;
    pipe.InitBuffer(in, 1, length * sizeof(float));
    pipe.InitBuffer(out, 1, length * sizeof(float));
    AscendC::LocalTensor<float> a = in.AllocTensor<float>();
    AscendC::DataCopy(a, from, length);
    in.EnQue(a);
    a = in.DeQue<float>();
    AscendC::LocalTensor<float> b = out.AllocTensor<float>();
    AscendC::Add(b, a, a, length);
    out.EnQue(b);
    b = out.DeQue<float>();
    AscendC::DataCopy(to, b, length);
    in.FreeTensor(a);
    out.FreeTensor(b);
}
"""
# It refuses to run where it can read a file outside its folder.
HOST = """#include "torch_kernel_helper.h"
#include "tiling/platform/platform_ascendc.h"
#include "aclrtlaunch_twice.h"
#include <cstdio>

namespace ascend_kernel {
constexpr int64_t DEPTH = 2;
at::Tensor twice(const at::Tensor &self, double unused)
{
    TORCH_CHECK(self.scalar_type() == at::kFloat, "float32 only, not ", self.scalar_type());
    TORCH_CHECK(std::fopen("OUTSIDE", "rb") == nullptr, "not confined");
    at::Tensor output = at::empty_like(self);
    auto platform = platform_ascendc::PlatformAscendCManager::GetInstance();
    uint32_t blockDim = platform->GetCoreNumAiv();
    int64_t length = self.numel() / blockDim;
    EXEC_KERNEL_CMD(twice, blockDim, self, output, length);
    return output;
}
}
"""
INPUTS = "inputs[0][0]: Tensor(shape=(48, 2, 512), dtype=torch.float32, device=npu:0)\ninputs[0][1]: 0.5\n"
PASS = (
    f"Status    : PASS\n{INPUTS}case[0]: output[0]: matched, MERE=0, MARE=0, threshold=0.0001\nResult: pass"
)
FAIL = f"Status    : FAIL\n{INPUTS}case[0]: output[0]: mismatched, MERE=0.5, MARE=1.2\nResult: fail"
PROFILE = {
    "ascendc": {
        "case_results": [{"index": 0, "latency_ms": 0.004, "operators": {"twice": 3.5, "aten::x": 9.0}}]
    }
}


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the benchmark as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import device_sessions

    yield device_sessions
    for name in ("device_sessions", "session_data", "session_files", "session_outcomes", "session_programs"):
        sys.modules.pop(name, None)


class Recorded:
    """A session as it is recorded."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": "text"}]

    def call(self, tool: str, result: str, **arguments: object) -> Recorded:
        """Add a call of a tool and its result."""
        name = f"call_{len(self.messages)}"
        function = {"name": tool, "arguments": json.dumps(arguments)}
        self.messages += [
            {"role": "assistant", "tool_calls": [{"id": name, "function": function}]},
            {"role": "tool", "tool_call_id": name, "content": result},
        ]
        return self

    def wrote(self, path: str, text: str) -> Recorded:
        """Add a write of a file."""
        return self.call("Write", "File created", file_path=f"{ROOT}/{path}", content=text)

    def edited(self, path: str, old: str, new: str, result: str = "updated") -> Recorded:
        """Add an edit of a file."""
        return self.call("Edit", result, file_path=f"{ROOT}/{path}", old_string=old, new_string=new)

    def ran(self, result: str) -> Recorded:
        """Add a run of a script."""
        return self.call("Bash", result, command="bash evaluate.sh")

    def saved(self, folder: Path) -> Path:
        """Write the session to a file."""
        path = folder / "7_Twice.json"
        path.write_text(json.dumps({"messages": self.messages}), encoding="utf-8")
        return path


def test_versions_are_the_files_as_they_were_when_the_device_was_asked(reader: Any, tmp_path: Path) -> None:
    error = f"{ROOT}/op_kernel/twice.cpp:17:5: error: no matching function for call to 'Add'\n1 error"
    recorded = Recorded().wrote("op_kernel/twice.cpp", KERNEL.replace("a, a, length)", "a)"))
    recorded.wrote("op_host/twice.cpp", HOST).ran(error)
    recorded.edited("op_kernel/twice.cpp", "a)", "never", "<tool_use_error>File has not been read yet")
    recorded.edited("op_kernel/twice.cpp", "b, a)", "b, a, a, length)").ran(
        "TypeError: 5 were given\nResult: fail"
    )
    recorded.ran("... errorStr: VEC instruction error: the ub address out of bounds. fixp")
    recorded.edited("op_host/twice.cpp", "GetCoreNumAiv()", "GetCoreNumAiv() / 2").ran(FAIL)
    recorded.edited("op_host/twice.cpp", "GetCoreNumAiv() / 2", "GetCoreNumAiv()").wrote("notes.md", "text")
    recorded.edited("op_kernel/twice.cpp", "int32_t length", "int64_t length").ran(PASS)
    recorded.call("Read", f"1\t{json.dumps(PROFILE)}", file_path=f"{ROOT}/performance.json")
    versions = reader.load_session(recorded.saved(tmp_path)).versions
    assert [one.verdict.value for one in versions] == ["build_error", "runtime_error", "wrong", "right"]
    assert versions[0].note == "twice.cpp:17: no matching function for call to 'Add'"
    assert "ub address out of bounds" in versions[1].note
    assert versions[2].outcomes[0].cases[0].largest_error == 1.2
    assert versions[3].files == {
        f"{ROOT}/op_kernel/twice.cpp": KERNEL.replace("int32_t length", "int64_t length"),
        f"{ROOT}/op_host/twice.cpp": HOST,
    }
    assert versions[3].times_us == {0: 3.5}
    assert versions[3].inputs == {0: ("float32:48x2x512", "0.5")}
    assert not any(one.doubtful for one in versions)


def test_what_cannot_be_replayed_is_named_until_the_file_is_read_or_written(
    reader: Any, tmp_path: Path
) -> None:
    recorded = Recorded().wrote("op_kernel/a.cpp", "one\ntwo")
    recorded.call("Bash", "", command=f"sed -i s/one/1/ {ROOT}/op_kernel/a.cpp").ran(FAIL)
    recorded.call("Read", "1\t1\n2\ttwo", file_path=f"{ROOT}/op_kernel/a.cpp").ran(FAIL)
    command = f"cd {ROOT} && cat > op_kernel/a.cpp << 'EOF'\nthree\nEOF"
    recorded.call("Bash", "", command=command).ran(PASS)
    versions = reader.load_session(recorded.saved(tmp_path)).versions
    path = f"{ROOT}/op_kernel/a.cpp"
    assert [one.files[path] for one in versions] == ["one\ntwo", "1\ntwo", "three\n"]
    assert [one.doubtful for one in versions] == [(path,), (), ()]


@pytest.mark.parametrize(
    ("text", "told"),
    [("{", "expected a JSON document"), ("[]", 'expected {"messages"'), ('{"messages": [1]}', "expected {")],
)
def test_bad_files_are_named(reader: Any, tmp_path: Path, capsys: Any, text: str, told: str) -> None:
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    assert reader.main([str(tmp_path)]) == 2
    assert f"{tmp_path / 'bad.json'}: {told}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("output y0.bin float32 2 3 ", None),
        ("output y0.bin float8 2 3 ", "tensors of float8 are unknown"),
        ("output y0.bin float32 2 4 ", "y0.bin: expected a file of 32 bytes, float32 (2, 4)"),
        ("output y1.bin float32 2 3 ", "expected outputs y0.bin, y1.bin"),
        ("output y0.bin float32 2 3 \noutput y1.bin float32 2 3 ", "y1.bin: expected a file of 24 bytes"),
    ],
)
def test_what_a_program_says_of_its_outputs_is_checked(
    reader: Any, tmp_path: Path, said: str, told: str | None
) -> None:
    from session_data import outputs_of

    (tmp_path / "y0.bin").write_bytes(bytes(24))
    (tmp_path / "y1.bin").symlink_to("y0.bin")
    if told is None:
        assert [values.shape for _, values in outputs_of(said, tmp_path)] == [(2, 3)]
        return
    with pytest.raises(MisuseError, match=re.escape(told)):
        outputs_of(said, tmp_path)


def test_versions_run_confined_and_the_right_one_judges(reader: Any, tmp_path: Path, capsys: Any) -> None:
    outside = tmp_path / "secret"
    outside.write_text("text", encoding="utf-8")
    host = HOST.replace("OUTSIDE", str(outside))
    recorded = Recorded().wrote("op_kernel/twice.cpp", KERNEL.replace("a, a, length", "a, b, length"))
    recorded.wrote("op_host/twice.cpp", host).ran(FAIL)
    recorded.edited("op_kernel/twice.cpp", "a, b, length", "a, a, length").ran(PASS)
    folder = tmp_path / "versions"
    status = reader.main([str(recorded.saved(tmp_path)), "--run", "--out", str(folder)])
    assert status == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[2:4] for row in rows] == [["wrong", "differs"], ["right", "ran"]]
    assert (folder / "7_Twice" / "2" / "program" / "program.asc").exists()
    assert (folder / "7_Twice" / "2" / "sources" / "op_host" / "twice.cpp").read_text("utf-8") == host
