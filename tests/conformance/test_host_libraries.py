"""Host headers that the operator libraries by domain use, as tiling programs that check them."""

from __future__ import annotations

from pathlib import Path

from host_side_machine import Host, toolchain, toy

__all__ = ["toolchain"]

_RECORD = """
struct Record { int rows = 0; std::string name; };
void to_json(nlohmann::json &j, const Record &record) { j["rows"] = record.rows; j["name"] = record.name; }
void from_json(const nlohmann::json &j, Record &record) {
    j.at("rows").get_to(record.rows);
    j.at("name").get_to(record.name);
}
"""
_JSON = r"""
    uint32_t held = 0;
    const auto parsed = nlohmann::json::parse(
        "{\"a\": [1, 2.5, -3], \"b\": {\"c\": \"x\\\"y\"}, \"d\": true}");
    const auto &list = parsed["a"];
    held += list.size() == 3 && list[1].get<double>() == 2.5 && list[2].get<int64_t>() == -3;
    held += parsed["b"]["c"].get<std::string>() == "x\"y" && parsed["d"].get<bool>();
    held += parsed.find("none") == parsed.cend() && parsed.contains("a");
    const nlohmann::json made = Record{7, "rows"};
    held += made.get<Record>().rows == 7 && nlohmann::json::parse(made.dump()) == made;
    try {
        nlohmann::json::parse("{\"a\": }");
    } catch (const nlohmann::json::exception &) {
        ++held;
    }
    int numbers = 0;
    for (const auto &each : parsed["a"]) numbers += each.is_number();
    held += numbers == 3;
    context->SetBlockDim(held);
    return ge::GRAPH_SUCCESS;
"""
_PLANS = """
    AscendC::tiling::TCubeTiling plain{};
    matmul_tiling::MatmulApiTiling planner(platform_ascendc::PlatformAscendC(context->GetPlatformInfo()));
    using namespace matmul_tiling;
    planner.SetAType(TPosition::GM, CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16);
    planner.SetBType(TPosition::GM, CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16);
    planner.SetCType(TPosition::GM, CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    planner.SetShape(96, 64, 32);
    planner.SetOrgShape(96, 64, 32);
    if (planner.GetTiling(plain) == -1) return ge::GRAPH_FAILED;
    TCubeTiling &same = plain;
    context->SetBlockDim(same.M);
    return ge::GRAPH_SUCCESS;
"""
_SURROUNDINGS = """
    const bool alone = std::getenv("PATH") == nullptr && getenv("HOME") == nullptr;
    const unsigned long long read = std::stoull("41");
    const bool named = Ops::Base::GetOpInfo(context).find(context->GetNodeType()) == 0;
    context->SetBlockDim(alone && named ? read + 1 : 1);
    return ge::GRAPH_SUCCESS;
"""


def test_json_values_are_read_written_and_converted(toolchain: Path, tmp_path: Path) -> None:
    text = f"#include <nlohmann/json.hpp>\n{_RECORD}{toy(_JSON)}"
    assert Host(text, tmp_path, toolchain).decide().block_dim == 6


def test_plans_of_products_go_into_the_structure_that_kernels_read(toolchain: Path, tmp_path: Path) -> None:
    text = '#include "kernel_tiling/kernel_tiling.h"\n' + toy(_PLANS)
    assert Host(text, tmp_path, toolchain).decide().block_dim == 96


def test_tiling_programs_see_no_environment(toolchain: Path, tmp_path: Path) -> None:
    text = '#include <cstdlib>\n#include "log/log.h"\n' + toy(_SURROUNDINGS)
    assert Host(text, tmp_path, toolchain).decide().block_dim == 42
