// One call of an operator: what its tiling function may ask for and what it answers.
#pragma once

#include <cstdint>
#include <vector>

#include "exe_graph/runtime/compute_node_info.h"
#include "exe_graph/runtime/tensor.h"
#include "exe_graph/runtime/tiling_data.h"
#include "platform/platform_infos_def.h"

namespace asim::host {

constexpr size_t kTilingDataCapacityBytes = 64 * 1024;
constexpr size_t kMaxWorkspaces = 16;

// What the tiling function decides.
struct LaunchDecision {
    bool block_dim_set = false;
    uint32_t block_dim = 0;
    uint64_t tiling_key = 0;
    uint32_t schedule_mode = 0;
    bool need_atomic = false;
    std::vector<size_t> workspace_bytes;
};

struct Call {
    Call()
        : tiling_buffer(kTilingDataCapacityBytes / sizeof(uint64_t)),
          tiling_data(tiling_buffer.data(), kTilingDataCapacityBytes) {}
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    gert::ComputeNodeInfo node;
    std::vector<gert::Tensor> inputs;
    std::vector<gert::Tensor> outputs;
    fe::PlatFormInfos platform;
    bool deterministic = false;
    void *compile_info = nullptr;

    LaunchDecision decision;
    std::vector<uint64_t> tiling_buffer;  // whole words: tiling structures are eight-byte aligned
    gert::TilingData tiling_data;
};

}  // namespace asim::host
