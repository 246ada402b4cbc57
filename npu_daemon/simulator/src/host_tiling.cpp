// Loads the compiled host code of an operator and answers, as JSON on standard output:
//   host_tiling describe <library> <operator, or -> <chip>     its definition
//   host_tiling run <library> <request file>                   what its tiling function decides
//   host_tiling infer <library> <request file>                 the shapes of its outputs
// Everything the operator itself prints goes to standard error.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "asim/host/describe.h"
#include "asim/host/fault.h"
#include "asim/host/json.h"
#include "asim/host/reached.h"
#include "asim/host/request.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"

namespace {

using namespace asim::host;

constexpr uint32_t kMaxBlocks = 65535;

void load(const std::string &library) {
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) throw HostFault(dlerror());
}

std::string status_name(ge::graphStatus status) {
    if (status == ge::GRAPH_FAILED) return "GRAPH_FAILED";
    if (status == ge::GRAPH_PARAM_INVALID) return "GRAPH_PARAM_INVALID";
    return "status " + std::to_string(status);
}

void require_success(ge::graphStatus status, const std::string &function) {
    if (status != ge::GRAPH_SUCCESS) throw HostFault(function + " returned " + status_name(status));
}

TilingFunction tiling_function_of(const ops::OpDef &definition, const Implementation &implementation) {
    if (definition.ai_core().tiling() != nullptr) return definition.ai_core().tiling();
    if (implementation.tiling != nullptr) return implementation.tiling;
    throw HostFault("no tiling function registered for " + definition.type() +
                    ": call AICore().SetTiling(...) in its OpDef or IMPL_OP_OPTILING(" + definition.type() +
                    ").Tiling(...)");
}

std::string hexadecimal(const void *data, size_t size) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string digits;
    for (size_t i = 0; i < size; ++i) {
        const uint8_t byte = static_cast<const uint8_t *>(data)[i];
        digits += kDigits[byte >> 4];
        digits += kDigits[byte & 15];
    }
    return digits;
}

void check_decision(const Call &call) {
    if (!call.decision.block_dim_set) throw HostFault("SetBlockDim was never called");
    if (call.decision.block_dim == 0 || call.decision.block_dim > kMaxBlocks) {
        throw HostFault("SetBlockDim(" + std::to_string(call.decision.block_dim) + "): expected 1 to " +
                        std::to_string(kMaxBlocks) + " blocks");
    }
    if (call.tiling_data.GetDataSize() > call.tiling_data.GetCapacity()) {
        throw HostFault("the tiling data has " + std::to_string(call.tiling_data.GetDataSize()) + " bytes, at most " +
                        std::to_string(call.tiling_data.GetCapacity()) + " are possible");
    }
}

std::string encode_decision(const Call &call) {
    const LaunchDecision &decision = call.decision;
    const auto number = [](size_t value) { return std::to_string(value); };
    return json::object({
        {"block_dim", std::to_string(decision.block_dim)},
        {"tiling_key", std::to_string(decision.tiling_key)},
        {"tiling_data", json::text(hexadecimal(call.tiling_data.GetData(), call.tiling_data.GetDataSize()))},
        {"workspace_bytes", json::array(decision.workspace_bytes, number)},
        {"schedule_mode", std::to_string(decision.schedule_mode)},
        {"need_atomic", json::boolean(decision.need_atomic)},
    });
}

std::string run(const std::string &request_path) {
    Request request;
    read_request(request_path, request);
    Call &call = request.call;
    const ops::OpDef &definition = find_definition(request.op_type);
    const Implementation &implementation = registry().implementations[definition.type()];
    const TilingFunction tiling = tiling_function_of(definition, implementation);
    call.node.type = call.node.name = definition.type();

    std::unique_ptr<void, void (*)(void *)> compile_info(nullptr, implementation.compile_info.destroy);
    if (implementation.tiling_parse != nullptr) {
        compile_info.reset(implementation.compile_info.make());
        call.compile_info = compile_info.get();
        gert::TilingParseContext context(call);
        require_success(implementation.tiling_parse(&context), "the tiling parse function");
    }
    gert::TilingContext context(call);
    require_success(tiling(&context), "the tiling function");
    check_decision(call);
    return json::object({{"decision", encode_decision(call)}, {"reached", json::text(reached_digits())}});
}

std::string infer(const std::string &request_path) {
    Request request;
    read_request(request_path, request);
    Call &call = request.call;
    const ops::OpDef &definition = find_definition(request.op_type);
    const Implementation &implementation = registry().implementations[definition.type()];
    if (implementation.infer_shape == nullptr) {
        throw HostFault("no InferShape function registered for " + definition.type());
    }
    call.node.type = call.node.name = definition.type();
    for (gert::Tensor &output : call.outputs) output.MutableShape().MutableOriginShape() = gert::Shape();
    gert::InferShapeContext context(call);
    require_success(implementation.infer_shape(&context), "the InferShape function");
    const auto extents = [](const gert::Tensor &output) {
        const gert::Shape &shape = output.GetOriginShape();
        std::vector<int64_t> each;
        for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) each.push_back(shape.GetDim(axis));
        return json::array(each, [](int64_t extent) { return std::to_string(extent); });
    };
    return json::object({{"shapes", json::array(call.outputs, extents)}});
}

std::string answer(const std::vector<std::string> &arguments) {
    if (arguments.size() == 4 && arguments[0] == "describe") {
        load(arguments[1]);
        return json::object({{"definition", describe(find_definition(arguments[2]), arguments[3])}});
    }
    if (arguments.size() == 3 && arguments[0] == "run") {
        load(arguments[1]);
        return run(arguments[2]);
    }
    if (arguments.size() == 3 && arguments[0] == "infer") {
        load(arguments[1]);
        return infer(arguments[2]);
    }
    throw HostFault("usage: host_tiling describe <library> <operator or -> <chip> | run or infer <library> <request file>");
}

std::string fault(const char *kind, const std::string &message) {
    return json::object({{"fault", json::text(kind)}, {"message", json::text(message)}});
}

std::string guarded_answer(const std::vector<std::string> &arguments) {
    try {
        return answer(arguments);
    } catch (const UnsupportedFault &unsupported) {
        return fault("unsupported", unsupported.what());
    } catch (const HostFault &broken) {
        return fault("tiling", broken.what());
    } catch (const std::exception &thrown) {
        return fault("tiling", std::string("the host code threw an exception: ") + thrown.what());
    }
}

}  // namespace

int main(int argc, char **argv) {
    const int answer_descriptor = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    const std::string text = guarded_answer(std::vector<std::string>(argv + 1, argv + argc)) + "\n";
    std::fflush(nullptr);
    size_t written = 0;
    while (written < text.size()) {
        const ssize_t step = write(answer_descriptor, text.data() + written, text.size() - written);
        if (step < 0) return 1;
        written += static_cast<size_t>(step);
    }
    _exit(0);  // the operator's own destructors have nothing to add
}
