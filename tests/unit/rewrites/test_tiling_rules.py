"""Rules about tile sizes, alignment and cores: the exact change, and where they must not apply."""

import pytest
from conftest import make_candidate
from rewritten import HOST, KERNEL, rewrites, rule_named, tiling_after

TILINGS = [
    ("tile_size", "constexpr uint32_t TILE_LENGTH = 2048;\n", "constexpr uint32_t TILE_LENGTH = 4096;\n"),
    ("tile_size", "#define UB_PART_SIZE 1024U // bytes\n", "#define UB_PART_SIZE 2048U // bytes\n"),
    ("tile_size", "const int MAX_TILE = 8 * 1024;\n", "const int MAX_TILE = (8 * 1024) * 2;\n"),
    (
        "tile_size",
        "void f() { uint32_t tileLength = ubSize / 3; }\n",
        "void f() { uint32_t tileLength = (ubSize / 3) / 2; }\n",
    ),
    ("tile_size", "void f() { tiling.set_tileNum(8); }\n", "void f() { tiling.set_tileNum(4); }\n"),
    (
        "tile_size",
        "void f() { uint64_t tileBlockNum = (ubSize / 32) / ubDataNumber; }\n",
        "void f() { uint64_t tileBlockNum = ((ubSize / 32) / ubDataNumber) / 2; }\n",
    ),
    (
        "tile_size",
        "void f() { uint64_t ubPartNum = wide ? 8 : 4; }\n",
        "void f() { uint64_t ubPartNum = (wide ? 8 : 4) * 2; }\n",
    ),
    (
        "fixed_cores",
        "void f() { coreNum = platform.GetCoreNumAiv(); }\n",
        "void f() { coreNum = 8; }\n",
    ),
    (
        "core_share",
        "void f() { coreNum = platform.GetCoreNumAiv(); }\n",
        "void f() { coreNum = platform.GetCoreNumAiv() / 2; }\n",
    ),
    (
        "core_share",
        "void f() { auto coreNum = platform.GetCoreNum() / 2; }\n",
        "void f() { auto coreNum = platform.GetCoreNum() / 4; }\n",
    ),
    (
        "core_share",
        "void f() { auto coreNum = platform.GetCoreNum() / 8; }\n",
        "void f() { auto coreNum = platform.GetCoreNum(); }\n",
    ),
    (
        "core_work",
        "#include <algorithm>\nint f(C* c) { P p(c->GetPlatformInfo()); c->GetInputShape(0);\n"
        "    auto coreNum = p.GetCoreNumAiv(); }\n",
        "#include <algorithm>\nint f(C* c) { P p(c->GetPlatformInfo()); c->GetInputShape(0);\n"
        "    auto coreNum = static_cast<uint32_t>(std::min<int64_t>(p.GetCoreNumAiv(), "
        "(c->GetInputShape(0)->GetStorageShape().GetShapeSize() / 8192 + 1))); }\n",
    ),
    (
        "single_core_limit",
        "void f() { if (tile >= total) { coreNum = 1; } else { cut(); } }\n",
        "void f() { if (tile * 8 >= total) { coreNum = 1; } else { cut(); } }\n",
    ),
    (
        "single_core_limit",
        "void f() { if (total < a + b) info->usedCoreNum = 1U; else cut(); }\n",
        "void f() { if (total < (a + b) * 8) info->usedCoreNum = 1U; else cut(); }\n",
    ),
    (
        "least_core_work",
        "void f() { coreNum = (coreNum < all / 32) ? coreNum : all / 32; }\n",
        "void f() { coreNum = (coreNum < (all / 32 + 255) / 256) ? coreNum : (all / 32 + 255) / 256; }\n",
    ),
    (
        "least_core_work",
        "void f() { n = cores <= (all + 15) / 16 ? cores : (all + 15) / 16; }\n",
        "void f() { n = cores <= (all + 255) / 256 ? cores : (all + 255) / 256; }\n",
    ),
    (
        "least_core_work",
        "void f() { n = cores < (all + 3) / 16 ? cores : (all + 3) / 16; }\n",
        "void f() { n = cores < (((all + 3) / 16) + 255) / 256 ? cores : (((all + 3) / 16) + 255) / 256; }\n",
    ),
    (
        "least_core_work",
        "void f() { used = tasks > coreNum ? coreNum : tasks; }\n",
        "void f() { used = (tasks + 255) / 256 > coreNum ? coreNum : (tasks + 255) / 256; }\n",
    ),
    (
        "least_core_work",
        "int f() { if (need < cores) { return need; } else { return cores; } }\n",
        "int f() { if ((need + 255) / 256 < cores) { return (need + 255) / 256; } else { return cores; } }\n",
    ),
    (
        "least_core_work",
        "void f() { if (coreNum >= tiles) coreNum = tiles; }\n",
        "void f() { if (coreNum >= (tiles + 255) / 256) coreNum = (tiles + 255) / 256; }\n",
    ),
    (
        "least_core_work",
        "void f() { auto used = std::min<uint64_t>(tiles, p.coreNum); }\n",
        "void f() { auto used = std::min<uint64_t>((tiles + 255) / 256, p.coreNum); }\n",
    ),
    (
        "tile_alignment",
        "void f() { uint32_t tileLength = ubSize / 3; }\n",
        "void f() { uint32_t tileLength = (ubSize / 3) / 512 * 512; }\n",
    ),
    (
        "tile_alignment",
        "void f() { uint64_t tileBlockNum = ubSize / 32 / parts; }\n",
        "void f() { uint64_t tileBlockNum = (ubSize / 32 / parts) / 16 * 16; }\n",
    ),
    (
        "tile_alignment",
        "void f() { uint64_t tileBlockNum = (ubSize / 32) / 16 * 16; }\n",
        "void f() { uint64_t tileBlockNum = ubSize / 32; }\n",
    ),
    ("split_alignment", "uint64_t BLOCK_SIZE = 32;\n", "uint64_t BLOCK_SIZE = 512;\n"),
    ("split_alignment", "constexpr int ALIGN_ELEMS = 0x20;\n", "constexpr int ALIGN_ELEMS = 512;\n"),
    (
        "ub_share",
        "void f() { p->GetCoreMemSize(CoreMemType::UB, c->ub); c->ub = c->ub * 2 / 6 / 512 * 512; }\n",
        "void f() { p->GetCoreMemSize(CoreMemType::UB, c->ub); c->ub = c->ub * 2 / 4 / 512 * 512; }\n",
    ),
    (
        "ub_share",
        "void f() { p.GetCoreMemSize(CoreMemType::UB, x); }\n"
        "void g() { p.GetCoreMemSize(CoreMemType::UB, y); }\n",
        "void f() { p.GetCoreMemSize(CoreMemType::UB, x);\nx = x * 2 / 4 / 512 * 512; }\n"
        "void g() { p.GetCoreMemSize(CoreMemType::UB, y);\ny = y * 2 / 4 / 512 * 512; }\n",
    ),
    ("ub_reserve", "constexpr int UB_RESERVED_BYTE = 1024;\n", "constexpr int UB_RESERVED_BYTE = 512;\n"),
    ("block_dim", "constexpr uint32_t BLOCK_DIM = 20;\n", "constexpr uint32_t BLOCK_DIM = 48;\n"),
    ("block_dim", "constexpr int CORENUM = 1;\n", "constexpr int CORENUM = 48;\n"),
    ("block_dim", "void f() { context->SetBlockDim(8); }\n", "void f() { context->SetBlockDim(48); }\n"),
]


@pytest.mark.parametrize(("name", "before", "after"), TILINGS)
def test_tiling_rule_makes_exactly_this_change(name, before, after):
    assert tiling_after(name, before) == after


@pytest.mark.parametrize(
    ("name", "tiling"),
    [
        ("tile_size", "constexpr uint32_t TILING_KEY = 2;\nconstexpr uint32_t BLOCK_SIZE = 32;\n"),
        ("tile_size", "constexpr uint64_t TILE_KEY = 10;\nconstexpr float TILE_FACTOR = 2.0f;\n"),
        ("tile_size", "void f() { uint64_t tileNum = total / length; }\n"),
        ("tile_size", "void f() { uint64_t tileDataNum = tileBlockNum * 32 / inputBytes; }\n"),
        ("core_share", "void f() { g(2 % platform.GetCoreNum()); }\n"),
        ("core_share", "void f() { coreNum = platform.GetCoreNumAic(); }\n"),
        ("single_core_limit", "void f() { if (tile >= total) { coreNum = 1; } }\n"),
        ("single_core_limit", "void f() { if (tail == 0) { coreNum = 1; } else { cut(); } }\n"),
        ("single_core_limit", "void f() { if (tile >= total) { n = 1; } else { cut(); } }\n"),
        ("least_core_work", "void f() { n = cores > all ? cores : all; }\n"),
        ("least_core_work", "void f() { n = cores < 8 ? cores : 8; }\n"),
        ("least_core_work", "void f() { if (tiles < coreNum) { return coreNum; } }\n"),
        ("least_core_work", "void f() { n = std::min(tiles, length); }\n"),
        (
            "least_core_work",
            "void f() { n = BLOCK_DIM < p.GetCoreNumAiv() ? BLOCK_DIM : p.GetCoreNumAiv(); }\n",
        ),
        ("core_share", "void f() { auto coreNum = p.GetCoreNumAiv(); context->SetBlockDim(coreNum); }\n"),
        ("tile_alignment", "constexpr int TILE_LENGTH = 96;\n"),
        ("split_alignment", "constexpr int BLOCK_SIZE = 8;\nconstexpr int BLOCK_DIM = 32;\n"),
        ("ub_share", "void f() { p.GetCoreMemSize(platform_ascendc::CoreMemType::L1, size); }\n"),
        ("ub_share", "void f() { auto size = p.GetCoreMemSize(CoreMemType::UB, other); }\n"),
        ("ub_reserve", "constexpr int RESERVED_NUM = 4;\n"),
        ("tile_size", "constexpr int UB_RESERVED_BYTES = 1024;\n"),
        ("block_dim", "constexpr uint32_t BLOCK_SIZE = 32;\nuint32_t usedCoreNum = 1;\n"),
        ("block_dim", "void f() { context->SetBlockDim(coreNum); }\n"),
        ("block_dim", "constexpr uint32_t bigCoreDataNum = 64;\n"),
    ],
)
def test_tiling_rule_leaves_other_names_alone(name, tiling):
    assert rule_named(name).sites(make_candidate(tiling, "")) == []


def test_least_core_work_goes_on_from_what_it_wrote_and_back():
    before = make_candidate("void f() { n = cores < all ? cores : all; }\n", "")
    rule = rule_named("least_core_work")
    (first,) = rule.sites(before)
    (second,) = rule.sites(rule.apply(before, first, first.choices[0]))
    assert [choice.label.rpartition(" / ")[2] for choice in second.choices[:-1]] == [
        "1024",
        "64",
        "4096",
        "16",
    ]
    assert rule.apply(rule.apply(before, first, first.choices[0]), second, second.choices[-1]) == before
    assert not second.choices[-1].forward


@pytest.mark.parametrize("rule", ["block_dim", "block_dim_from_platform"])
def test_numbers_of_cores_stay_where_the_kernel_has_the_part_of_a_core_as_a_constant(rule):
    host = "constexpr int BLOCK_DIM = 2;\nvoid f(TilingContext* context) { use(BLOCK_DIM); }\n"
    assert rule_named(rule).sites(make_candidate(host, ""))
    assert not rule_named(rule).sites(make_candidate(host, "constexpr int32_t singleCoreM = 512;\n"))


def test_cores_and_the_part_of_each_change_together_and_back():
    host = "constexpr int BLOCK_DIM = 2;\n"
    kernel = (
        "constexpr int singleCoreM = 512;\nconstexpr int singleCoreN = 640;\nconstexpr int baseM = 128;\n"
    )
    before, rule = make_candidate(host, kernel + "constexpr int baseN = 128;\n"), rule_named("core_parts")
    rows, columns = rule.sites(before)
    assert [choice.label for choice in rows.choices if choice.forward] == [
        "BLOCK_DIM: 2 -> 8 and singleCoreM: 512 -> 128",
        "BLOCK_DIM: 2 -> 4 and singleCoreM: 512 -> 256",
    ]
    after = rule.apply(before, columns, columns.choices[0])
    assert ("BLOCK_DIM = 10" in after.tiling_text, "singleCoreN = 128" in after.kernel_text) == (True, True)
    rows, columns = rule.sites(after)
    back = [rule.apply(after, columns, choice) for choice in columns.choices if not choice.forward]
    assert before in back
    assert not rule.sites(make_candidate(host, "constexpr int singleCoreK = 64;\n"))


def test_cores_that_only_start_are_shared_where_blocks_ask_how_many_there_are():
    host = "void f() { auto coreNum = p.GetCoreNumAiv(); context->SetBlockDim(coreNum); }\n"
    kernel = "void g() { step = GetBlockNum() * tile; }\n"
    assert rule_named("core_share").sites(make_candidate(host, kernel))


def test_tile_size_offers_larger_tiles_first_and_smaller_ones_as_the_way_back():
    (site,) = rule_named("tile_size").sites(make_candidate("constexpr int TILE = 16;\n", ""))
    assert site.label == f"{HOST}:1 TILE = 16"
    assert [(choice.label, choice.forward) for choice in site.choices] == [
        ("TILE: 16 -> 32", True),
        ("TILE: 16 -> 64", True),
        ("TILE: 16 -> 128", True),
        ("TILE: 16 -> 8", False),
        ("TILE: 16 -> 4", False),
        ("TILE: 16 -> 2", False),
    ]


def test_a_tile_that_fills_ub_is_offered_smaller_first():
    (site,) = rule_named("tile_size").sites(make_candidate("void f() { uint64_t ubDataNumber = 6; }\n", ""))
    assert [(choice.label, choice.forward) for choice in site.choices] == [
        ("ubDataNumber: 6 -> 12", True),
        ("ubDataNumber: 6 -> 24", True),
        ("ubDataNumber: 6 -> 48", True),
        ("ubDataNumber: 6 -> 3", False),
    ]
    (site,) = rule_named("tile_size").sites(make_candidate("void f() { int tileLength = room / 3; }\n", ""))
    assert all(choice.forward and "/" in choice.label for choice in site.choices)


def test_block_dim_offers_more_cores_first():
    (site,) = rule_named("block_dim").sites(make_candidate("constexpr int BLOCK_DIM = 24;\n", ""))
    assert [choice.label.split()[-1] for choice in site.choices if choice.forward] == ["48", "40"]
    assert [choice.label.split()[-1] for choice in site.choices if not choice.forward] == ["20", "12"]


def test_a_tile_length_of_both_sides_changes_on_both():
    tiling, kernel = "constexpr uint32_t TILE_LENGTH = 64;\n", "constexpr int32_t TILE_LENGTH = 64;\n"
    candidate = make_candidate(tiling, kernel)
    assert rule_named("tile_size").sites(candidate) == []
    assert rule_named("kernel_tile_size").sites(candidate) == []
    _, _, after = rewrites(rule_named("shared_tile_size"), tiling, kernel)[0]
    assert after == {HOST: tiling.replace("64", "128"), KERNEL: kernel.replace("64", "128")}


def test_a_tile_length_of_the_kernel_alone_changes_there():
    kernel = "class K {\n    constexpr static int64_t bufferSize = 6144;\n};\n"
    _, _, after = rewrites(rule_named("kernel_tile_size"), "constexpr int bufferSize = 4096;\n", kernel)[0]
    assert after[KERNEL] == kernel.replace("6144", "12288")


FIXED_CORES = """\
constexpr uint32_t BLOCK_DIM = 8;
static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    context->SetBlockDim(BLOCK_DIM);
    return ge::GRAPH_SUCCESS;
}
"""


def test_block_dim_from_platform_shadows_the_constant_and_includes_the_header():
    line = (
        "    const uint32_t BLOCK_DIM = "
        "platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();\n"
    )
    expected = '#include "tiling/platform/platform_ascendc.h"\n' + FIXED_CORES.replace("{\n", "{\n" + line)
    assert tiling_after("block_dim_from_platform", FIXED_CORES) == expected
    included = '#include "tiling/platform/platform_ascendc.h"\n' + FIXED_CORES
    assert tiling_after("block_dim_from_platform", included) == expected


@pytest.mark.parametrize(
    "tiling",
    [
        FIXED_CORES.replace("gert::TilingContext* context", "Params& p"),
        FIXED_CORES + "int more() { return BLOCK_DIM; }\n",
        FIXED_CORES.replace("constexpr uint32_t BLOCK_DIM = 8;", "#define BLOCK_DIM 8"),
    ],
)
def test_block_dim_from_platform_needs_one_user_with_the_context(tiling):
    assert rule_named("block_dim_from_platform").sites(make_candidate(tiling, "")) == []


def test_a_macro_without_semicolon_does_not_hide_a_constant():
    registered = f"REGISTER_TILING_DATA_CLASS(Toy, ToyTilingData)\n\n{FIXED_CORES}"
    assert len(rule_named("block_dim_from_platform").sites(make_candidate(registered, ""))) == 1


def test_fixed_cores_brings_the_constant_back_to_light():
    included = '#include "tiling/platform/platform_ascendc.h"\n' + FIXED_CORES
    shadowed = tiling_after("block_dim_from_platform", included)
    assert rule_named("block_dim_from_platform").sites(make_candidate(shadowed, "")) == []
    assert tiling_after("fixed_cores", shadowed) == included


def test_tiling_key_offers_the_other_keys_that_the_kernel_asks_for():
    tiling = "void f() { context->SetTilingKey(1); }\n"
    kernel = "void k() { if (TILING_KEY_IS(1)) { a(); } else if (TILING_KEY_IS(20UL)) { b(); } }\n"
    ((_, label, after),) = rewrites(rule_named("tiling_key"), tiling, kernel)
    assert label == "key 1 -> 20"
    assert after == {HOST: tiling.replace("1", "20"), KERNEL: kernel}
    assert rule_named("tiling_key").sites(make_candidate(tiling.replace("1", "2"), kernel)) == []


def test_a_limit_of_one_core_can_be_lowered_and_set_back():
    tiling = "void f() { if ((a + b) * 64 >= total) { coreNum = 1; } else { cut(); } }\n"
    (site,) = rule_named("single_core_limit").sites(make_candidate(tiling, ""))
    assert [(choice.label.split(" -> ")[1], choice.forward) for choice in site.choices] == [
        ("((a + b) * 64) * 8", True),
        ("((a + b) * 64) * 64", True),
        ("((a + b) * 64) / 8", False),
        ("a + b", False),
    ]
