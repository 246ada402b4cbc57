// The two-phase call of an operator (aclnnXGetWorkspaceSize, aclnnX) with arguments known only at run time.
#pragma once

#include <acl/acl.h>
#include <aclnn/acl_meta.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.h"

namespace asg {

constexpr size_t kIntegerArguments = 40;
constexpr size_t kRealArguments = 8;

// Calls a C function with integers and pointers on one side and doubles on the other. On x86-64 (System V) and
// AArch64 (AAPCS64) these go to register files of their own, integers that find no register follow on the stack in
// order, and a callee does not see arguments beyond its own: any mixture of up to 8 doubles is served by one type.
template <size_t... I, size_t... R>
int callWith(void *function, const uint64_t *integers, const double *reals, std::index_sequence<I...>,
             std::index_sequence<R...>) {
    using Function = int (*)(decltype((void)I, uint64_t{})..., decltype((void)R, double{})...);
    return reinterpret_cast<Function>(function)(integers[I]..., reals[R]...);
}

class ArgumentList {
public:
    explicit ArgumentList(const Job &job) : arguments_(job.arguments) {
        for (const Argument &argument : arguments_) {
            for (const TensorEntry &entry : argument.tensors) {
                buffers_.push_back(std::make_unique<Buffer>(entry, job.slots, job.rerun));
            }
        }
    }

    const std::vector<std::unique_ptr<Buffer>> &buffers() const { return buffers_; }

    // Ask how much workspace a call with the tensors of a slot needs.
    int prepare(void *function, uint32_t slot, uint64_t *workspaceBytes, aclOpExecutor **executor) {
        integers_.fill(0);
        reals_.fill(0.0);
        integerCount_ = realCount_ = 0;
        size_t buffer = 0;
        for (const Argument &argument : arguments_) {
            add(argument, slot, buffer);
        }
        addInteger(workspaceBytes);
        addInteger(executor);
        return callWith(function, integers_.data(), reals_.data(), std::make_index_sequence<kIntegerArguments>(),
                        std::make_index_sequence<kRealArguments>());
    }

private:
    template <typename T>
    void addInteger(T *pointer) {
        addInteger(reinterpret_cast<uint64_t>(pointer));
    }

    void addInteger(uint64_t value) {
        require(integerCount_ < kIntegerArguments, "too many arguments");
        integers_[integerCount_++] = value;
    }

    void addReal(double value) {
        require(realCount_ < kRealArguments, "more than 8 real attributes");
        reals_[realCount_++] = value;
    }

    void add(const Argument &argument, uint32_t slot, size_t &buffer) {
        if (argument.kind == "tensor") {
            addInteger(tensor(*buffers_[buffer++], slot));
        } else if (argument.kind == "list") {
            std::vector<const aclTensor *> members;
            for (size_t index = 0; index < argument.tensors.size(); ++index) {
                members.push_back(tensor(*buffers_[buffer++], slot));
            }
            addInteger(aclCreateTensorList(members.data(), members.size()));
        } else if (argument.kind == "absent") {
            addInteger(uint64_t{0});
        } else if (argument.kind == "double") {
            addReal(argument.reals[0]);
        } else if (argument.kind == "string") {
            addInteger(argument.text.c_str());
        } else {
            addNumbers(argument);
        }
    }

    void addNumbers(const Argument &argument) {
        if (argument.kind == "int64s") {
            addInteger(aclCreateIntArray(argument.integers.data(), argument.integers.size()));
        } else if (argument.kind == "floats") {
            const std::vector<float> values(argument.reals.begin(), argument.reals.end());
            addInteger(aclCreateFloatArray(values.data(), values.size()));
        } else if (argument.kind == "bools") {
            const auto values = std::make_unique<bool[]>(argument.integers.size());
            std::copy(argument.integers.begin(), argument.integers.end(), values.get());
            addInteger(aclCreateBoolArray(values.get(), argument.integers.size()));
        } else {
            addInteger(static_cast<uint64_t>(argument.integers[0]));
        }
    }

    static aclTensor *tensor(const Buffer &buffer, uint32_t slot) {
        const TensorEntry &entry = buffer.entry();
        std::vector<int64_t> strides(entry.shape.size(), 1);
        for (size_t axis = entry.shape.size(); axis-- > 1;) {
            strides[axis - 1] = strides[axis] * entry.shape[axis];
        }
        return aclCreateTensor(entry.shape.data(), entry.shape.size(), static_cast<aclDataType>(entry.dtype),
                               strides.data(), 0, ACL_FORMAT_ND, entry.shape.data(), entry.shape.size(),
                               buffer.address(slot));
    }

    const std::vector<Argument> &arguments_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    std::array<uint64_t, kIntegerArguments> integers_{};
    std::array<double, kRealArguments> reals_{};
    size_t integerCount_ = 0;
    size_t realCount_ = 0;
};

}  // namespace asg
