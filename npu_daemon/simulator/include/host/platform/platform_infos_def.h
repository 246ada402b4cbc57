// fe::PlatFormInfos: the figures of the chip that the call is planned for.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fe {

enum class LocalMemType {
    L0_A = 0,
    L0_B = 1,
    L0_C = 2,
    L1 = 3,
    L2 = 4,
    UB = 5,
    HBM = 6,
    RESERVED
};

class PlatFormInfos {
 public:
    // Number of vector cores where vector and cube cores are separate.
    uint32_t GetCoreNum() const { return vector_cores; }
    void GetCoreNum(uint32_t &cores) const { cores = vector_cores; }
    uint32_t GetCoreNumByType(const std::string &type) const {
        return type == "VectorCore" ? vector_cores : cube_cores;
    }

    // Bytes of one memory of the chip.
    void GetLocalMemSize(const LocalMemType &type, uint64_t &bytes) const;
    // Bytes per cycle and core that one memory delivers.
    void GetLocalMemBw(const LocalMemType &type, uint64_t &bytes_per_cycle) const;

    // Text of one entry of the chip description; false when the description has no such entry.
    bool GetPlatformRes(const std::string &label, const std::string &key, std::string &value) const;
    bool GetPlatformResWithLock(const std::string &label, const std::string &key, std::string &value) const {
        return GetPlatformRes(label, key, value);
    }

    // "Ascend910B" of "Ascend910B2".
    std::string short_soc_version() const;

    std::string soc_version;
    uint32_t cube_cores = 0;
    uint32_t vector_cores = 0;
    std::map<LocalMemType, uint64_t> memory_bytes;
    std::map<LocalMemType, uint64_t> memory_bytes_per_cycle;
};

}  // namespace fe
