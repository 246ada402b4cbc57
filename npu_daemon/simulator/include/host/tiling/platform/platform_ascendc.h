// platform_ascendc::PlatformAscendC: the chip as tiling functions ask about it.
#pragma once

#include <cstdint>

#include "platform/platform_infos_def.h"
#include "platform/soc_spec.h"

namespace platform_ascendc {

enum class CoreMemType {
    L0_A = 0,
    L0_B = 1,
    L0_C = 2,
    L1 = 3,
    L2 = 4,
    UB = 5,
    HBM = 6,
    FB = 7,
    BT = 8,
    RESERVED
};

enum class SocVersion {
    ASCEND910 = 0,
    ASCEND910B,
    ASCEND310P,
    ASCEND310B,
    ASCEND950,
    ASCEND910_55,
    ASCEND910_95 = ASCEND950,
    ASCEND310,
    ASCEND910_93,
    ASCEND610LITE,
    MC62CM12A,
    KIRINX90,
    KIRIN9030,
    RESERVED_VERSION = 99999
};

enum class ReservedSize { RESERVED_SIZE_8K, RESERVED_SIZE_16K, RESERVED_SIZE_32K };

class PlatformAscendC {
 public:
    PlatformAscendC() = delete;
    explicit PlatformAscendC(fe::PlatFormInfos *chip) : chip_(chip) {}

    SocVersion GetSocVersion() const;
    NpuArch GetCurNpuArch() const { return NpuArch::DAV_2201; }
    uint32_t GetCoreNum() const { return chip().GetCoreNum(); }
    uint32_t GetCoreNumAic() const { return chip().cube_cores; }
    uint32_t GetCoreNumAiv() const { return chip().vector_cores; }
    // Extra vector cores next to the AI cores: only the 310P has them.
    uint32_t GetCoreNumVector() const { return 0; }

    // Bytes of one memory that a kernel may use: UB and L1 of the 910B keep 256 bytes for themselves.
    void GetCoreMemSize(const CoreMemType &type, uint64_t &bytes) const;
    void GetCoreMemBw(const CoreMemType &type, uint64_t &bytes_per_cycle) const;
    void ReserveLocalMemory(ReservedSize size);

    // Bytes at the start of the workspace that belong to the API library.
    uint32_t GetLibApiWorkSpaceSize() const;
    uint32_t GetResCubeGroupWorkSpaceSize() const;
    uint32_t GetResGroupBarrierWorkSpaceSize() const;

    // Block dim for `slices` slices when one block is a cube core with its vector cores.
    uint32_t CalcTschBlockDim(uint32_t slices, uint32_t cube_cores, uint32_t vector_cores) const;
    uint32_t CalcTschNumBlocks(uint32_t slices, uint32_t cube_cores, uint32_t vector_cores) const {
        return CalcTschBlockDim(slices, cube_cores, vector_cores);
    }

 private:
    const fe::PlatFormInfos &chip() const;

    fe::PlatFormInfos *chip_;
    uint64_t reserved_bytes_ = 0;
};

class PlatformAscendCManager {
 public:
    // The chip of the current request, for code that has no context at hand.
    static PlatformAscendC *GetInstance();
    static PlatformAscendC *GetInstance(const char *) { return GetInstance(); }
};

}  // namespace platform_ascendc
