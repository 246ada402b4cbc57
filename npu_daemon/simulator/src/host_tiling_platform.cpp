// What the chip description of a request answers to host code.
#include <array>
#include <string>

#include "asim/host/chip.h"
#include "asim/host/fault.h"
#include "platform/platform_infos_def.h"
#include "tiling/platform/platform_ascendc.h"

using asim::host::HostFault;
using asim::host::UnsupportedFault;

namespace {

constexpr uint64_t kMiB = 1024 * 1024;

constexpr std::array<const char *, 7> kMemoryNames = {"L0_A", "L0_B", "L0_C", "L1", "L2", "UB", "HBM"};

uint64_t figure_of(const std::map<fe::LocalMemType, uint64_t> &figures, fe::LocalMemType type, const char *what) {
    const auto found = figures.find(type);
    if (found != figures.end()) return found->second;
    const auto index = static_cast<size_t>(type);
    const std::string name = index < kMemoryNames.size() ? kMemoryNames[index] : std::to_string(index);
    throw UnsupportedFault("the chip description has no " + std::string(what) + " of memory " + name);
}

bool starts_with(const std::string &text, const char *prefix) { return text.rfind(prefix, 0) == 0; }

struct SocRow {
    const char *prefix;
    const char *short_version;
    platform_ascendc::SocVersion version;
};

// The first matching prefix counts. Ascend910_93 answers as Ascend910B, whose binaries it runs.
constexpr SocRow kSocs[] = {
    {"Ascend910_93", "Ascend910_93", platform_ascendc::SocVersion::ASCEND910B},
    {"Ascend910B1", "Ascend910B", platform_ascendc::SocVersion::ASCEND910B},
    {"Ascend910B2", "Ascend910B", platform_ascendc::SocVersion::ASCEND910B},
    {"Ascend910B3", "Ascend910B", platform_ascendc::SocVersion::ASCEND910B},
    {"Ascend910B4", "Ascend910B", platform_ascendc::SocVersion::ASCEND910B},
    {"Ascend910", "Ascend910", platform_ascendc::SocVersion::ASCEND910},
    {"Ascend310P", "Ascend310P", platform_ascendc::SocVersion::ASCEND310P},
    {"Ascend310B", "Ascend310B", platform_ascendc::SocVersion::ASCEND310B},
    {"Ascend950", "Ascend950", platform_ascendc::SocVersion::ASCEND950},
};

const SocRow &soc_row(const std::string &soc_version) {
    for (const SocRow &row : kSocs) {
        if (starts_with(soc_version, row.prefix)) return row;
    }
    throw UnsupportedFault("unknown chip '" + soc_version + "'; expected a name such as Ascend910B2");
}

}  // namespace

namespace asim::host {

fe::PlatFormInfos &current_chip() {
    static fe::PlatFormInfos chip;
    return chip;
}

}  // namespace asim::host

namespace fe {

void PlatFormInfos::GetLocalMemSize(const LocalMemType &type, uint64_t &bytes) const {
    bytes = figure_of(memory_bytes, type, "size");
}

void PlatFormInfos::GetLocalMemBw(const LocalMemType &type, uint64_t &bytes_per_cycle) const {
    bytes_per_cycle = figure_of(memory_bytes_per_cycle, type, "bandwidth");
}

std::string PlatFormInfos::short_soc_version() const { return soc_row(soc_version).short_version; }

bool PlatFormInfos::GetPlatformRes(const std::string &label, const std::string &key, std::string &value) const {
    const std::map<std::string, std::string> entries = {
        {"version/SoC_version", soc_version},
        {"version/Short_SoC_version", short_soc_version()},
        {"SoCInfo/core_type_list", "CubeCore,VectorCore"},
        {"SoCInfo/ai_core_cnt", std::to_string(cube_cores)},
        {"SoCInfo/cube_core_cnt", std::to_string(cube_cores)},
        {"SoCInfo/vector_core_cnt", std::to_string(vector_cores)},
        // Instructions of the cube cores; host code asks whether there are any.
        {"AICoreintrinsicDtypeMap/Intrinsic_fix_pipe_l0c2out", "float16,float32,int32"},
        {"AICoreintrinsicDtypeMap/Intrinsic_data_move_l12bt", "float32,int32"},
    };
    const auto found = entries.find(label + "/" + key);
    if (found == entries.end()) return false;
    value = found->second;
    return true;
}

}  // namespace fe

namespace platform_ascendc {

const fe::PlatFormInfos &PlatformAscendC::chip() const {
    if (chip_ == nullptr) throw HostFault("PlatformAscendC was made from a null platform pointer");
    return *chip_;
}

SocVersion PlatformAscendC::GetSocVersion() const { return soc_row(chip().soc_version).version; }

void PlatformAscendC::GetCoreMemSize(const CoreMemType &type, uint64_t &bytes) const {
    constexpr uint64_t kMessageBytes = 256;  // kept for messages between cube and vector cores
    chip().GetLocalMemSize(static_cast<fe::LocalMemType>(type), bytes);
    const bool local = type == CoreMemType::UB || type == CoreMemType::L1;
    if (local && GetSocVersion() == SocVersion::ASCEND910B) bytes -= kMessageBytes;
    if (type == CoreMemType::UB) bytes -= reserved_bytes_;
}

void PlatformAscendC::GetCoreMemBw(const CoreMemType &type, uint64_t &bytes_per_cycle) const {
    chip().GetLocalMemBw(static_cast<fe::LocalMemType>(type), bytes_per_cycle);
}

void PlatformAscendC::ReserveLocalMemory(ReservedSize size) {
    constexpr uint64_t kSmallestBytes = 8 * 1024;
    reserved_bytes_ = kSmallestBytes << static_cast<uint32_t>(size);
}

uint32_t PlatformAscendC::GetLibApiWorkSpaceSize() const {
    const SocVersion version = GetSocVersion();
    const bool large = version == SocVersion::ASCEND910B || version == SocVersion::ASCEND950;
    return static_cast<uint32_t>((large ? 16 : 2) * kMiB);
}

uint32_t PlatformAscendC::GetResCubeGroupWorkSpaceSize() const { return static_cast<uint32_t>(kMiB); }

uint32_t PlatformAscendC::GetResGroupBarrierWorkSpaceSize() const { return static_cast<uint32_t>(kMiB); }

uint32_t PlatformAscendC::CalcTschBlockDim(uint32_t slices, uint32_t cube_cores, uint32_t vector_cores) const {
    if (cube_cores == 0 || vector_cores == 0 || cube_cores > vector_cores) return slices;
    const uint32_t ratio = vector_cores / cube_cores;
    const uint32_t blocks = (slices + ratio - 1) / ratio;
    return ratio == 2 && blocks > cube_cores ? 0 : blocks;
}

PlatformAscendC *PlatformAscendCManager::GetInstance() {
    static PlatformAscendC instance(&asim::host::current_chip());
    return &instance;
}

}  // namespace platform_ascendc
