#include "asim/timing/bank_conflict.h"

#include <algorithm>
#include <cstring>

namespace asim {

namespace {

constexpr uint32_t kGroups = 16;
constexpr uint32_t kBanks = 48;
constexpr uint32_t kBlocksPerRepeat = 8;
constexpr uint32_t kSampledRepeats = 16;  // access patterns recur after at most 16 repeats of 32 B blocks

struct Slot {
    uint8_t group_reads[kGroups] = {};
    uint8_t group_writes[kGroups] = {};
    uint8_t bank_reads[kBanks] = {};
    uint8_t bank_writes[kBanks] = {};

    void touch(uint64_t address, bool write) {
        const uint32_t group = (address >> 5) & (kGroups - 1);
        const uint32_t bank = (group + kGroups * static_cast<uint32_t>(address >> 16)) % kBanks;
        ++(write ? group_writes : group_reads)[group];
        ++(write ? bank_writes : bank_reads)[bank];
    }

    uint32_t group_cycles() const {
        uint32_t worst = 1;
        for (uint32_t group = 0; group < kGroups; ++group) {
            worst = std::max<uint32_t>({worst, group_reads[group], group_writes[group]});
        }
        return worst;
    }

    uint32_t cycles() const {
        uint32_t worst = group_cycles();
        for (uint32_t bank = 0; bank < kBanks; ++bank) {
            if (bank_reads[bank] && bank_writes[bank]) {
                worst = std::max<uint32_t>(worst, bank_reads[bank] + bank_writes[bank]);
            }
        }
        return worst;
    }
};

// Masks of bits, of which a repeat needs less than a block: each block is read or written once, for some repeats.
void touch_mask(Slot &slot, const Operand &operand, uint32_t repeats, uint32_t repeat, bool write) {
    const uint64_t first = uint64_t{operand.extent_bytes} * repeat / repeats, next = uint64_t{operand.extent_bytes} * (repeat + 1) / repeats;
    if ((first + 31) / 32 * 32 < next) slot.touch(operand.address + (first + 31) / 32 * 32, write);
}

// Of the data blocks of a repeat, the part that instruction slot `part` of `parts` reads or writes.
void touch_repeat(Slot &slot, const Operand &operand, uint32_t repeats, uint32_t repeat, bool write, uint32_t part, uint32_t parts) {
    constexpr uint32_t kInOrder = 1u | 8u << 16;
    if (operand.stride == kInOrder && operand.extent_bytes < repeats * 32) return touch_mask(slot, operand, repeats, repeat, write);
    const uint32_t block_stride = operand.stride & 0xffffu;
    const uint32_t repeat_stride = operand.stride >> 16;
    const uint32_t blocks = block_stride == 0 ? 1 : std::min(kBlocksPerRepeat, (operand.extent_bytes + 31) / 32);
    const uint64_t start = operand.address + uint64_t{repeat} * repeat_stride * 32;
    const uint32_t end = std::min(blocks, kBlocksPerRepeat * (part + 1) / parts);
    for (uint32_t block = kBlocksPerRepeat * part / parts; block < end; ++block) slot.touch(start + uint64_t{block} * block_stride * 32, write);
}

bool same_operands(const Entry &a, const Entry &b) {
    if (a.record.repeats != b.record.repeats || a.record.operands != b.record.operands) return false;
    return std::memcmp(a.operands, b.operands, a.record.operands * sizeof(Operand)) == 0;
}

// A source that is read twice, as in x * x: each row of it is read once for both.
bool read_before(const Entry &entry, uint32_t operand) {
    for (uint32_t i = 1; i < operand; ++i) {
        if (std::memcmp(&entry.operands[i], &entry.operands[operand], sizeof(Operand)) == 0) return true;
    }
    return false;
}

size_t hash_of(const Entry &entry) {
    uint64_t hash = entry.record.repeats;
    for (uint32_t i = 0; i < entry.record.operands; ++i) hash = hash * 31 + (entry.operands[i].address >> 5);
    return hash ^ hash >> 7 ^ hash >> 13;
}

}  // namespace

BankCycles bank_cycles_per_repeat(const Entry &entry, uint32_t parts) {
    const uint32_t repeats = std::min(entry.record.repeats, kSampledRepeats);
    if (repeats == 0) return {};
    uint32_t cycles = 0, group_cycles = 0;
    for (uint32_t step = 0; step < repeats * parts; ++step) {
        const uint32_t repeat = step / parts, part = step % parts;
        Slot slot;
        for (uint32_t i = 1; i < entry.record.operands; ++i) {
            if (!read_before(entry, i)) touch_repeat(slot, entry.operands[i], entry.record.repeats, repeat, false, part, parts);
        }
        if (entry.record.operands > 0 && repeat > 0) touch_repeat(slot, entry.operands[0], entry.record.repeats, repeat - 1, true, part, parts);
        cycles += slot.cycles();
        group_cycles += slot.group_cycles();
    }
    return {static_cast<double>(cycles) / repeats, static_cast<double>(group_cycles) / repeats};
}

const BankCycles &BankConflicts::cycles_per_repeat(const Entry &entry, uint32_t parts) {
    Known &known = known_[hash_of(entry) % kPlaces];
    if (known.parts != parts || !same_operands(known.entry, entry)) known = {entry, parts, bank_cycles_per_repeat(entry, parts)};
    return known.cycles;
}

}  // namespace asim
