#include "job.h"

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

namespace asim {

namespace {

std::string path_or_nothing(const std::string &word) { return word == "-" ? "" : word; }

Parameter parse_parameter(std::istringstream &words) {
    Parameter parameter;
    std::string kind;
    words >> parameter.name >> kind;
    parameter.list = kind == "list";
    parameter.absent = kind == "absent";
    return parameter;
}

TensorFile parse_tensor(std::istringstream &words) {
    TensorFile tensor;
    std::string input, output;
    words >> tensor.address >> tensor.bytes >> input >> output;
    tensor.input_path = path_or_nothing(input);
    tensor.output_path = path_or_nothing(output);
    for (uint64_t extent; words >> extent;) tensor.shape.push_back(extent);
    return tensor;
}

}  // namespace

Job parse_job(const std::string &path) {
    Job job;
    using Reader = std::function<void(std::istringstream &)>;
    const std::map<std::string, Reader> readers = {
        {"kernel", [&](auto &words) { words >> job.kernel_path; }},
        {"trace", [&](auto &words) { words >> job.trace_path; }},
        {"tiling", [&](auto &words) { words >> job.tiling_path; }},
        {"block_dim", [&](auto &words) { words >> job.block_dim; }},
        {"core_count", [&](auto &words) { words >> job.core_count; }},
        {"ub_bytes", [&](auto &words) { words >> job.ub_bytes; }},
        {"tiling_key", [&](auto &words) { words >> job.tiling_key; }},
        {"workspace_bytes", [&](auto &words) { words >> job.workspace_bytes; }},
        {"record_limit", [&](auto &words) { words >> job.record_limit; }},
        {"time_limit_ms", [&](auto &words) { words >> job.time_limit_ms; }},
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

}  // namespace asim
