// What the runner is told: the file that npu_daemon/cann/execution.py writes.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace asg {

struct TensorEntry {
    std::string role;  // in, out
    std::string name;
    int32_t dtype = 0;  // aclDataType
    uint64_t bytes = 0;
    std::string file;
    std::vector<int64_t> shape;
};

struct Argument {
    std::string kind;  // tensor, list, absent, int64, bool, double, string, int64s, floats, bools
    std::vector<TensorEntry> tensors;
    std::vector<int64_t> integers;
    std::vector<double> reals;
    std::string text;
};

struct Job {
    int32_t device = 0;
    std::string cleaner;  // library of the kernel that cleans the cache
    uint32_t cleanerBlocks = 0;
    uint64_t cleanerBytes = 0;
    std::string library;  // of the candidate; empty: only the device is tried
    std::string function;
    uint32_t rounds = 0;
    uint32_t slots = 1;
    uint32_t rerun = 0;  // changes where calls begin among the slots, and what outputs are filled with
    int32_t timeLimitMs = 0;
    std::vector<Argument> arguments;
};

inline void require(bool holds, const std::string &what) {
    if (!holds) {
        throw std::runtime_error("bad job: " + what);
    }
}

template <typename T>
T readValue(std::istream &in, const char *what) {
    T value{};
    in >> value;
    require(!in.fail(), what);
    return value;
}

template <typename T>
std::vector<T> readCounted(std::istream &in, const char *what) {
    std::vector<T> values(readValue<uint32_t>(in, what));
    for (T &value : values) {
        value = readValue<T>(in, what);
    }
    return values;
}

inline std::string readHexadecimal(std::istream &in) {
    const auto digits = readValue<std::string>(in, "string");
    std::string text;
    for (size_t at = 1; at + 1 < digits.size(); at += 2) {  // the first character is a mark: strings may be empty
        text.push_back(static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16)));
    }
    return text;
}

inline TensorEntry readTensor(std::istream &in) {
    TensorEntry entry;
    entry.role = readValue<std::string>(in, "role");
    entry.name = readValue<std::string>(in, "name");
    entry.dtype = readValue<int32_t>(in, "dtype");
    entry.bytes = readValue<uint64_t>(in, "bytes");
    entry.file = readValue<std::string>(in, "file");
    entry.shape = readCounted<int64_t>(in, "shape");
    require(entry.role == "in" || entry.role == "out", "role");
    return entry;
}

inline Argument readArgument(std::istream &in) {
    Argument argument;
    argument.kind = readValue<std::string>(in, "kind of argument");
    if (argument.kind == "tensor" || argument.kind == "list") {
        const auto count = argument.kind == "list" ? readValue<uint32_t>(in, "length") : 1U;
        for (uint32_t index = 0; index < count; ++index) {
            argument.tensors.push_back(readTensor(in));
        }
    } else if (argument.kind == "int64" || argument.kind == "bool") {
        argument.integers = {readValue<int64_t>(in, "integer")};
    } else if (argument.kind == "int64s" || argument.kind == "bools") {
        argument.integers = readCounted<int64_t>(in, "integers");
    } else if (argument.kind == "double") {
        argument.reals = {readValue<double>(in, "real")};
    } else if (argument.kind == "floats") {
        argument.reals = readCounted<double>(in, "reals");
    } else if (argument.kind == "string") {
        argument.text = readHexadecimal(in);
    } else {
        require(argument.kind == "absent", "unknown kind of argument " + argument.kind);
    }
    return argument;
}

inline Job readJob(const char *path) {
    std::ifstream in(path);
    require(in.is_open(), std::string("cannot open ") + path);
    Job job;
    std::string key;
    while (in >> key) {
        if (key == "device") {
            job.device = readValue<int32_t>(in, "device");
        } else if (key == "cleaner") {
            job.cleaner = readValue<std::string>(in, "cleaner");
            job.cleanerBlocks = readValue<uint32_t>(in, "blocks");
            job.cleanerBytes = readValue<uint64_t>(in, "bytes");
        } else if (key == "library") {
            job.library = readValue<std::string>(in, "library");
        } else if (key == "function") {
            job.function = readValue<std::string>(in, "function");
        } else if (key == "rounds") {
            job.rounds = readValue<uint32_t>(in, "rounds");
        } else if (key == "slots") {
            job.slots = readValue<uint32_t>(in, "slots");
        } else if (key == "rerun") {
            job.rerun = readValue<uint32_t>(in, "rerun");
        } else if (key == "time_limit_ms") {
            job.timeLimitMs = readValue<int32_t>(in, "time limit");
        } else {
            require(key == "argument", "unknown key " + key);
            job.arguments.push_back(readArgument(in));
        }
    }
    require(job.slots > 0, "slots");
    return job;
}

}  // namespace asg
