// Device memory that the daemon owns: every buffer lies between two guard bands.
#pragma once

#include <acl/acl.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "job.h"

namespace asg {

constexpr size_t kGuardBytes = 4096;
constexpr size_t kPromisedBytes = 32;  // behind each allocation (aclrtMalloc): copies of whole blocks may use them
constexpr uint8_t kGuardByte = 0x5C;
constexpr uint8_t kPoisonByte = 0xA5;  // fills outputs at rerun 0, so that what is not written is seen

struct DeviceFault : std::runtime_error {
    DeviceFault(const std::string &stage, int code)
        : std::runtime_error(stage + " " + std::to_string(code)) {}
};

inline void check(int code, const char *stage) {
    if (code != 0) {
        throw DeviceFault(stage, code);
    }
}

inline void copyIn(void *target, const void *source, size_t bytes) {
    if (bytes > 0) {
        check(aclrtMemcpy(target, bytes, source, bytes, ACL_MEMCPY_HOST_TO_DEVICE), "copy_in");
    }
}

inline std::vector<uint8_t> copyOut(const void *source, size_t bytes) {
    std::vector<uint8_t> host(bytes);
    if (bytes > 0) {
        check(aclrtMemcpy(host.data(), bytes, source, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "copy_out");
    }
    return host;
}

// One tensor at as many addresses as there are slots.
class Buffer {
public:
    Buffer(const TensorEntry &entry, uint32_t slots, uint32_t rerun)
        : entry_(entry), stride_(strideOf(entry.bytes)), poison_(static_cast<uint8_t>(kPoisonByte + 29 * rerun)) {
        check(aclrtMalloc(&base_, stride_ * slots + kGuardBytes, ACL_MEM_MALLOC_HUGE_FIRST), "allocate");
        const std::vector<uint8_t> content = initial();
        std::vector<uint8_t> unit(stride_ + kGuardBytes, kGuardByte);
        std::copy(content.begin(), content.end(), unit.begin() + kGuardBytes);
        for (uint32_t slot = 0; slot < slots; ++slot) {
            copyIn(static_cast<uint8_t *>(base_) + slot * stride_, unit.data(), unit.size());
        }
    }

    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    ~Buffer() { (void)aclrtFree(base_); }

    void *address(uint32_t slot) const { return static_cast<uint8_t *>(base_) + slot * stride_ + kGuardBytes; }

    const TensorEntry &entry() const { return entry_; }

    // Say which guard band of a slot was written, or nothing.
    std::string overrun(uint32_t slot) const {
        const uint8_t *unit = static_cast<uint8_t *>(base_) + slot * stride_;
        for (const uint8_t byte : copyOut(unit, kGuardBytes)) {
            if (byte != kGuardByte) {
                return "before";
            }
        }
        const size_t after = entry_.bytes + kPromisedBytes;
        const size_t behind = stride_ - after;  // the band in front of the next slot included
        for (const uint8_t byte : copyOut(unit + kGuardBytes + after, behind)) {
            if (byte != kGuardByte) {
                return "behind";
            }
        }
        return {};
    }

    // Write an output, or say that an input was changed.
    bool save(uint32_t slot) const {
        const std::vector<uint8_t> content = copyOut(address(slot), entry_.bytes);
        if (entry_.role == "in") {
            return content == initial();
        }
        std::ofstream out(entry_.file, std::ios::binary);
        out.write(reinterpret_cast<const char *>(content.data()), static_cast<std::streamsize>(content.size()));
        out.close();
        require(out.good(), "cannot write " + entry_.file);
        return true;
    }

private:
    static size_t strideOf(size_t bytes) { return kGuardBytes + (bytes + 511) / 512 * 512; }

    std::vector<uint8_t> initial() const {
        std::vector<uint8_t> content(entry_.bytes, poison_);
        if (entry_.role == "in" && !content.empty()) {
            std::ifstream in(entry_.file, std::ios::binary);
            in.read(reinterpret_cast<char *>(content.data()), static_cast<std::streamsize>(content.size()));
            require(in.good(), "cannot read " + entry_.file);
        }
        return content;
    }

    TensorEntry entry_;
    size_t stride_;
    uint8_t poison_;
    void *base_ = nullptr;
};

}  // namespace asg
