// What the run program is asked to do: one keyword line each, see parse_job.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace asim {

struct TensorFile {
    uint64_t address = 0;       // canonical address of the tensor in the trace
    uint64_t bytes = 0;
    std::string input_path;     // empty: poisoned
    std::string output_path;    // empty: not written back
    std::vector<uint64_t> shape;
};

struct Parameter {
    std::string name;
    bool list = false;
    bool absent = false;
    std::vector<TensorFile> tensors;
};

struct Job {
    std::string kernel_path;
    std::string trace_path;
    std::string tiling_path;
    uint32_t block_dim = 1;
    uint32_t core_count = 1;
    uint32_t ub_bytes = 0;
    uint64_t tiling_key = 0;
    uint64_t workspace_bytes = 0;
    uint64_t record_limit = 0;
    uint32_t time_limit_ms = 0;
    std::vector<Parameter> parameters;  // in argument order: inputs, then outputs
};

// Lines: `kernel|trace|tiling PATH`, `block_dim|core_count|ub_bytes|tiling_key|workspace_bytes|record_limit|
// time_limit_ms N`, `parameter NAME plain|list|absent`, and after a parameter one line for each tensor:
// `tensor ADDRESS BYTES INPUT-PATH|- OUTPUT-PATH|- EXTENT...`. Throws std::runtime_error on anything else.
Job parse_job(const std::string &path);

}  // namespace asim
