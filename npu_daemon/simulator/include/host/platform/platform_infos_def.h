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
    // Number of vector cores, or of cube cores when the kernel has a part on them.
    uint32_t GetCoreNum() const { return core_num; }
    void GetCoreNum(uint32_t &cores) const { cores = core_num; }
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
    uint32_t core_num = 0;      // what GetCoreNum answers
    std::map<LocalMemType, uint64_t> memory_bytes;
    std::map<LocalMemType, uint64_t> memory_bytes_per_cycle;
};

}  // namespace fe
