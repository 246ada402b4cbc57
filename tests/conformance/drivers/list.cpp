#include "machine.h"

#include "asim/machine/gm.h"
#include "asim/machine/list_block.h"

namespace {

const uint64_t *g_block_words = nullptr;
bool g_has_workspace = false;

// Results go to 8-byte words of the unified buffer.
void report(int64_t offset_bytes, uint64_t word) { std::memcpy(asim::block().ub + offset_bytes, &word, sizeof word); }

// Arguments: number of tensors, then for each its address, rank and extents.
const Register g_build("build", [](Arguments a) {
    std::vector<asim::ListEntry> entries;
    const int64_t *next = a + 1;
    for (int64_t i = 0; i < a[0]; ++i) {
        asim::ListEntry entry;
        entry.data = reinterpret_cast<const void *>(*next++);
        const int64_t rank = *next++;
        for (int64_t axis = 0; axis < rank; ++axis) entry.shape.push_back(static_cast<uint64_t>(*next++));
        entries.push_back(entry);
    }
    const std::vector<uint64_t> words = asim::build_list_descriptor(entries);
    asim::GmRegion &region = asim::add_gm_region("list", asim::GmRole::List, words.size() * sizeof words[0], asim::kOwnAddress);
    std::memcpy(region.base, words.data(), words.size() * sizeof words[0]);
    g_block_words = reinterpret_cast<const uint64_t *>(region.base);
    report(0, words.size());
    for (size_t i = 0; i < words.size(); ++i) report(8 + 8 * static_cast<int64_t>(i), words[i]);
});

// The short form, without shapes: arguments are the addresses behind their number.
const Register g_short("build short", [](Arguments a) {
    asim::GmRegion &region = asim::add_gm_region("short", asim::GmRole::List, 24 + 8 * a[0], asim::kOwnAddress);
    auto *words = reinterpret_cast<uint64_t *>(region.base);
    words[0] = 24;
    words[1] = static_cast<uint64_t>(a[0]) << 32;
    words[2] = 0xffffffff;
    for (int64_t i = 0; i < a[0]; ++i) words[3 + i] = static_cast<uint64_t>(a[1 + i]);
    g_block_words = words;
});

void *block_pointer() { return const_cast<uint64_t *>(g_block_words); }

const Register g_size("size", [](Arguments) { report(0, AscendC::ListTensorDesc(block_pointer()).GetSize()); });

const Register g_data("data", [](Arguments a) {
    AscendC::ListTensorDesc list;
    list.Init(block_pointer());
    report(0, reinterpret_cast<uint64_t>(list.GetDataPtr<float>(static_cast<uint32_t>(a[0]))));
});

const Register g_desc("desc", [](Arguments a) {
    uint64_t shape[8] = {};
    AscendC::TensorDesc<float> desc;
    desc.SetShapeAddr(shape);
    AscendC::ListTensorDesc(block_pointer()).GetDesc(desc, static_cast<uint32_t>(a[0]));
    report(0, desc.GetDim());
    report(8, desc.GetIndex());
    report(16, reinterpret_cast<uint64_t>(desc.GetDataPtr()));
    report(24, desc.GetDataObj().GetSize());
    for (uint32_t axis = 0; axis < desc.GetDim(); ++axis) report(32 + 8 * axis, desc.GetShape(axis));
});

const Register g_system("system workspace", [](Arguments) {
    report(0, reinterpret_cast<uint64_t>(AscendC::GetSysWorkSpacePtr()));
});

// Argument: offset into the workspace that the kernel passes; reports how far behind its start the user part begins.
const Register g_user("user workspace", [](Arguments a) {
    if (!g_has_workspace) asim::add_gm_region("workspace", asim::GmRole::Workspace, 20 << 20, asim::kOwnAddress);
    g_has_workspace = true;
    uint8_t *base = AscendC::GetSysWorkSpacePtr();
    AscendC::SetSysWorkspace(base);
    report(0, static_cast<uint64_t>(AscendC::GetUserWorkspace(base + a[0]) - base));
});

const Register g_null("user workspace of none", [](Arguments) {
    report(0, reinterpret_cast<uint64_t>(AscendC::GetUserWorkspace(nullptr)));
});

const Register g_foreign("user workspace elsewhere", [](Arguments) {
    AscendC::GetUserWorkspace(static_cast<uint8_t *>(block_pointer()));
});

}  // namespace
