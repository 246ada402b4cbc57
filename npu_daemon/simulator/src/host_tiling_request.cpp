// Reading of request files: see asim/host/request.h for their form.
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "asim/host/chip.h"
#include "asim/host/fault.h"
#include "asim/host/request.h"
#include "graph/utils/type_utils.h"

namespace asim::host {
namespace {

template <class T>
T word(std::istream &line) {
    T value{};
    if (!(line >> value)) throw HostFault("the request file has an incomplete line");
    return value;
}

std::string unhex(const std::string &digits) {
    std::string decoded;
    if (digits == "-") return decoded;
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
        decoded += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
    return decoded;
}

float real_word(std::istream &line) { return std::strtof(word<std::string>(line).c_str(), nullptr); }

uint8_t flag_word(std::istream &line) { return word<int>(line) != 0 ? 1 : 0; }

template <class T>
std::vector<T> list(std::istream &line, const std::function<T(std::istream &)> &element) {
    std::vector<T> values(word<size_t>(line));
    for (T &value : values) value = element(line);
    return values;
}

void read_attribute(std::istream &line, gert::RuntimeAttrs &attributes) {
    const std::function<int64_t(std::istream &)> whole = word<int64_t>;
    const std::function<std::vector<int64_t>(std::istream &)> wholes = [&whole](std::istream &in) {
        return list<int64_t>(in, whole);
    };
    const std::map<std::string, std::function<void()>> readers = {
        {"int", [&] { attributes.append(word<int64_t>(line)); }},
        {"float", [&] { attributes.append(real_word(line)); }},
        {"bool", [&] { attributes.append(word<int>(line) != 0); }},
        {"string", [&] { attributes.append(unhex(word<std::string>(line))); }},
        {"list_int", [&] { attributes.append(wholes(line)); }},
        {"list_float", [&] { attributes.append(list<float>(line, real_word)); }},
        {"list_bool", [&] { attributes.append(list<uint8_t>(line, flag_word)); }},
        {"list_list_int", [&] { attributes.append(list<std::vector<int64_t>>(line, wholes)); }},
    };
    const auto type = word<std::string>(line);
    const auto reader = readers.find(type);
    if (reader == readers.end()) throw HostFault("the request file has an attribute of unknown type " + type);
    reader->second();
}

// Values of an input, in whole words so that any element type is aligned.
std::vector<uint64_t> read_values(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw HostFault("cannot read the input values in " + path);
    std::ostringstream content;
    content << file.rdbuf();
    const std::string bytes = content.str();
    std::vector<uint64_t> words((bytes.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

gert::Tensor read_tensor(std::istream &line, Request &request) {
    const ge::DataType type = ge::TypeUtils::SerialStringToDataType(word<std::string>(line));
    const ge::Format layout = ge::TypeUtils::SerialStringToFormat(word<std::string>(line));
    const std::string path = unhex(word<std::string>(line));
    gert::Shape shape;
    for (const int64_t extent : list<int64_t>(line, word<int64_t>)) shape.AppendDim(extent);
    void *values = nullptr;
    if (!path.empty()) values = request.input_values.emplace_back(read_values(path)).data();
    return {gert::StorageShape(shape, shape), gert::StorageFormat(layout, layout), type, values};
}

// One side (inputs or outputs) of the call while its lines are read.
struct Side {
    std::vector<gert::Tensor> &tensors;
    std::vector<gert::CompileTimeTensorDesc> &descs;
    std::vector<gert::AnchorInstanceInfo> &parameters;

    void start_parameter() { parameters.emplace_back(tensors.size(), 0); }
    void add(const gert::Tensor &tensor) {
        if (parameters.empty()) throw HostFault("the request file has a tensor before its parameter");
        gert::AnchorInstanceInfo &last = parameters.back();
        last = gert::AnchorInstanceInfo(last.GetInstanceStart(), last.GetInstanceNum() + 1);
        tensors.push_back(tensor);
        descs.emplace_back(tensor.GetDataType(), tensor.GetFormat());
    }
};

}  // namespace

void read_request(const std::string &path, Request &request) {
    std::ifstream file(path);
    if (!file) throw HostFault("cannot read the request file " + path);
    Call &call = request.call;
    Side inputs{call.inputs, call.node.input_descs, call.node.input_parameters};
    Side outputs{call.outputs, call.node.output_descs, call.node.output_parameters};
    Side *side = &inputs;
    const auto start = [&side](Side &next) {
        side = &next;
        next.start_parameter();
    };
    std::istringstream line;
    const auto memory = [&line] { return static_cast<fe::LocalMemType>(word<int>(line)); };
    const std::map<std::string, std::function<void()>> readers = {
        {"op", [&] { request.op_type = word<std::string>(line); }},
        {"soc", [&] { call.platform.soc_version = word<std::string>(line); }},
        {"cores",
         [&] {
             call.platform.cube_cores = word<uint32_t>(line);
             call.platform.vector_cores = word<uint32_t>(line);
             call.platform.core_num = word<uint32_t>(line);
         }},
        {"memory", [&] { const auto which = memory(); call.platform.memory_bytes[which] = word<uint64_t>(line); }},
        {"bandwidth",
         [&] { const auto which = memory(); call.platform.memory_bytes_per_cycle[which] = word<uint64_t>(line); }},
        {"deterministic", [&] { call.deterministic = word<int>(line) != 0; }},
        {"input", [&] { start(inputs); }},
        {"output", [&] { start(outputs); }},
        {"tensor", [&] { side->add(read_tensor(line, request)); }},
        {"attribute", [&] { read_attribute(line, call.node.attributes); }},
    };
    for (std::string text; std::getline(file, text);) {
        line = std::istringstream(text);
        const auto keyword = word<std::string>(line);
        const auto reader = readers.find(keyword);
        if (reader == readers.end()) throw HostFault("the request file has an unknown keyword " + keyword);
        reader->second();
    }
    current_chip() = call.platform;
}

}  // namespace asim::host
