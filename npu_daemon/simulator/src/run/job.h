// What the run program is asked to do: one keyword line each, see parse_job.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "asim/machine/scheduler.h"
#include "asim/machine/task_type.h"

namespace asim {

struct TensorFile {
    uint64_t address = 0;       // canonical address of the tensor in the trace
    uint64_t bytes = 0;
    std::string input_path;     // empty: poisoned
    std::optional<uint64_t> output_at;  // where its bytes go in the file of outputs; nowhere when there is none
    std::vector<uint64_t> shape;
};

struct Parameter {
    std::string name;
    bool list = false;
    bool absent = false;
    std::vector<TensorFile> tensors;
};

// A record of the trace whose place in the kernel is asked for.
struct Location {
    uint32_t block = 0;
    uint64_t ordinal = 0;
};

struct Job {
    std::string kernel_path;        // built for vector cores; empty when the kernel never runs on them
    std::string cube_kernel_path;   // built for cube cores, likewise
    KernelMetaType task_type = KERNEL_TYPE_AIV_ONLY;    // where the kernel names none itself
    std::string trace_path;
    std::string outputs_path;       // a file that is there already, like the trace
    std::string tiling_path;
    std::string soc_version;            // for host code that asks what chip it is on
    uint32_t block_dim = 1;
    uint32_t aiv_cores = 1;
    uint32_t aic_cores = 1;
    uint32_t ub_bytes = 0;
    uint32_t memory_bytes[kSpaceCount] = {};    // of a cube core
    uint64_t tiling_key = 0;
    uint64_t workspace_bytes = 0;
    uint64_t record_limit = 0;
    uint32_t time_limit_ms = 0;         // of CPU time
    uint32_t wall_limit_ms = 0;
    uint32_t rerun = 0;
    bool tells_reached = false;         // print which marked blocks were reached
    bool price_only = false;            // matrix products are not computed: outputs mean nothing
    std::vector<Location> locations;
    int located_launch = 0;             // of a program with several: which one they are looked for in
    std::vector<Parameter> parameters;  // in argument order: inputs, then outputs
};

// Lines: `kernel|cube_kernel|trace|outputs|tiling PATH`, `task_type aiv_only|aic_only|mix_1_1|mix_1_2`, `soc_version NAME`,
// `block_dim|aiv_cores|aic_cores|ub_bytes|l1_bytes|l0a_bytes|l0b_bytes|l0c_bytes|bias_table_bytes|fixpipe_buffer_bytes|tiling_key|
// workspace_bytes|record_limit|time_limit_ms|wall_limit_ms|rerun|price_only|tells_reached|located_launch N`, `locate BLOCK ORDINAL`,
// `parameter NAME plain|list|absent`, and after a parameter one line for each tensor: `tensor ADDRESS BYTES INPUT-PATH|- OUTPUT-OFFSET|- EXTENT...`. Throws
// std::runtime_error on anything else.
Job parse_job(const std::string &path);

// The cores of a launch of `block_dim` blocks of a kernel of that type (KernelMetaType).
LaunchShape shape_of(const Job &job, uint32_t task_type, uint32_t block_dim);

}  // namespace asim
