"""Tiling data that are read where they lie: which pointers change, and where the rule must not apply."""

import pytest
from conftest import make_candidate
from rewritten import rule_named

DEFINED = """\
BEGIN_TILING_DATA_DEF(ToyTilingData)
TILING_DATA_FIELD_DEF(uint32_t, tile);
TILING_DATA_FIELD_DEF_ARR(int64_t, 50, lengths);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Toy, ToyTilingData)
"""
KERNEL = """\
class K {
    void Init(const ToyTilingData* __restrict data)
    {
        all = data->lengths;
        tile = data->tile;
    }
    void Process(uint32_t tile, const int64_t* counts, const int64_t* other) { use(counts[0]); }
    const int64_t* all = nullptr;
};

void toy(GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    op.Init(&data);
    op.Process(data.tile, data.lengths, nullptr);
}
"""
IN_PLACE = """\
class K {
    void Init(const __gm__ ToyTilingData* __restrict data)
    {
        all = data->lengths;
        tile = data->tile;
    }
    void Process(uint32_t tile, const __gm__ int64_t* counts, const int64_t* other) { use(counts[0]); }
    const __gm__ int64_t* all = nullptr;
};

void toy(GM_ADDR tiling)
{
    auto data = reinterpret_cast<const __gm__ ToyTilingData *>(tiling);
    op.Init(data);
    op.Process(data->tile, data->lengths, nullptr);
}
"""


def test_the_pointers_to_tiling_data_and_to_their_arrays_lead_to_global_memory_and_back():
    rule, before = rule_named("tiling_data_in_place"), make_candidate(DEFINED, KERNEL)
    (site,) = rule.sites(before)
    after = rule.apply(before, site, site.choices[0])
    assert after.kernel_text == IN_PLACE
    assert rule.sites(after) == []
    back = rule_named("tiling_data_copy")
    (site,) = back.sites(after)
    assert back.apply(after, site, site.choices[0]) == before


def test_the_address_of_an_element_leads_to_global_memory_and_other_such_pointers_stay():
    def with_other(kernel, handed):
        """Return a kernel with a pointer to other data in global memory, and with an argument ``handed``."""
        more = "    const __gm__ int64_t* elsewhere = nullptr;\n};\n"
        return kernel.replace("};\n", more).replace("data.lengths,", handed).replace("data->lengths,", handed)

    before = make_candidate(DEFINED, with_other(KERNEL, "&data.lengths[0],"))
    rule, back = rule_named("tiling_data_in_place"), rule_named("tiling_data_copy")
    (site,) = rule.sites(before)
    after = rule.apply(before, site, site.choices[0])
    assert after.kernel_text == with_other(IN_PLACE, "&data->lengths[0],")
    (site,) = back.sites(after)
    assert back.apply(after, site, site.choices[0]) == before


@pytest.mark.parametrize(
    ("host", "kernel"),
    [
        (DEFINED.replace("_ARR(int64_t, 50, ", "(int64_t, "), KERNEL),
        (DEFINED + DEFINED.replace("ToyTilingData", "Other"), KERNEL.replace("ToyTilingData", "Any")),
        (DEFINED, KERNEL + "void toy2(GM_ADDR tiling) { GET_TILING_DATA(data, tiling); }\n"),
        (DEFINED, KERNEL.replace("&data", "data")),
        (DEFINED.replace("TILING_DATA_FIELD_DEF(uint32_t, ", "TILING_DATA_FIELD_DEF_STRUCT(Cube, "), KERNEL),
        ("", KERNEL),
    ],
    ids=["no array", "two structures", "two entries", "handed on", "a structure inside", "no definition"],
)
def test_other_tiling_data_are_copied_as_before(host, kernel):
    assert rule_named("tiling_data_in_place").sites(make_candidate(host, kernel)) == []
