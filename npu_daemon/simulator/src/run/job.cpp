#include "job.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

namespace asim {

namespace {

std::string path_or_nothing(const std::string &word) { return word == "-" ? "" : word; }

KernelMetaType parse_task_type(std::istringstream &words) {
    static const std::map<std::string, KernelMetaType> kTypes = {{"aiv_only", KERNEL_TYPE_AIV_ONLY},
                                                                 {"aic_only", KERNEL_TYPE_AIC_ONLY},
                                                                 {"mix_1_1", KERNEL_TYPE_MIX_AIC_1_1},
                                                                 {"mix_1_2", KERNEL_TYPE_MIX_AIC_1_2}};
    std::string name;
    words >> name;
    const auto found = kTypes.find(name);
    if (found == kTypes.end()) throw std::runtime_error("unknown task type '" + name + "'");
    return found->second;
}

Parameter parse_parameter(std::istringstream &words) {
    Parameter parameter;
    std::string kind;
    words >> parameter.name >> kind;
    parameter.list = kind == "list";
    parameter.absent = kind == "absent";
    return parameter;
}

Location parse_location(std::istringstream &words) {
    Location location;
    words >> location.block >> location.ordinal;
    return location;
}

TensorFile parse_tensor(std::istringstream &words) {
    TensorFile tensor;
    std::string input, output;
    words >> tensor.address >> tensor.bytes >> input >> output;
    tensor.input_path = path_or_nothing(input);
    if (output != "-") tensor.output_at = std::stoull(output);
    for (uint64_t extent; words >> extent;) tensor.shape.push_back(extent);
    return tensor;
}

}  // namespace

Job parse_job(const std::string &path) {
    Job job;
    const auto memory = [&](Space space) -> uint32_t & { return job.memory_bytes[static_cast<int>(space)]; };
    using Reader = std::function<void(std::istringstream &)>;
    const std::map<std::string, Reader> readers = {
        {"kernel", [&](auto &words) { words >> job.kernel_path; }},
        {"cube_kernel", [&](auto &words) { words >> job.cube_kernel_path; }},
        {"task_type", [&](auto &words) { job.task_type = parse_task_type(words); }},
        {"trace", [&](auto &words) { words >> job.trace_path; }},
        {"outputs", [&](auto &words) { words >> job.outputs_path; }},
        {"tiling", [&](auto &words) { words >> job.tiling_path; }},
        {"soc_version", [&](auto &words) { words >> job.soc_version; }},
        {"block_dim", [&](auto &words) { words >> job.block_dim; }},
        {"aiv_cores", [&](auto &words) { words >> job.aiv_cores; }},
        {"aic_cores", [&](auto &words) { words >> job.aic_cores; }},
        {"ub_bytes", [&](auto &words) { words >> job.ub_bytes; }},
        {"l1_bytes", [&](auto &words) { words >> memory(Space::L1); }},
        {"l0a_bytes", [&](auto &words) { words >> memory(Space::L0A); }},
        {"l0b_bytes", [&](auto &words) { words >> memory(Space::L0B); }},
        {"l0c_bytes", [&](auto &words) { words >> memory(Space::L0C); }},
        {"bias_table_bytes", [&](auto &words) { words >> memory(Space::BiasTable); }},
        {"fixpipe_buffer_bytes", [&](auto &words) { words >> memory(Space::FixpipeBuffer); }},
        {"tiling_key", [&](auto &words) { words >> job.tiling_key; }},
        {"workspace_bytes", [&](auto &words) { words >> job.workspace_bytes; }},
        {"record_limit", [&](auto &words) { words >> job.record_limit; }},
        {"time_limit_ms", [&](auto &words) { words >> job.time_limit_ms; }},
        {"wall_limit_ms", [&](auto &words) { words >> job.wall_limit_ms; }},
        {"rerun", [&](auto &words) { words >> job.rerun; }},
        {"locate", [&](auto &words) { job.locations.push_back(parse_location(words)); }},
        {"located_launch", [&](auto &words) { words >> job.located_launch; }},
        {"tells_reached", [&](auto &words) { words >> job.tells_reached; }},
        {"price_only", [&](auto &words) { words >> job.price_only; }},
        {"parameter", [&](auto &words) { job.parameters.push_back(parse_parameter(words)); }},
        {"tensor", [&](auto &words) { job.parameters.at(job.parameters.size() - 1).tensors.push_back(parse_tensor(words)); }},
    };
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read job " + path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string keyword;
        words >> keyword;
        const auto reader = readers.find(keyword);
        if (reader == readers.end()) throw std::runtime_error("unknown job keyword '" + keyword + "'");
        reader->second(words);
    }
    return job;
}

LaunchShape shape_of(const Job &job, uint32_t task_type, uint32_t block_dim) {
    LaunchShape shape;
    switch (task_type) {
        case KERNEL_TYPE_AIC_ONLY:
        case KERNEL_TYPE_MIX_AIC_1_0: shape.composition = {1, 0}; break;
        case KERNEL_TYPE_MIX_AIC_1_1: shape.composition = {1, 1}; break;
        case KERNEL_TYPE_MIX_AIC_1_2: shape.composition = {1, 2}; break;
        default: shape.composition = {0, 1};
    }
    shape.group_count = block_dim;
    shape.resident_groups = shape.composition.cubes == 0 ? job.aiv_cores : job.aic_cores;
    shape.ub_bytes = job.ub_bytes;
    std::copy_n(job.memory_bytes, kSpaceCount, shape.memory_bytes);
    return shape;
}

}  // namespace asim
