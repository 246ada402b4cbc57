#include <algorithm>

#include "asim/trace/encoder.h"

namespace asim {

namespace {

// The words of a record.
struct Words {
    uint64_t head, tail;
    explicit Words(const Record &record)
        : head(uint64_t{static_cast<uint16_t>(record.op)} | uint64_t{record.dtype_bytes} << 16 | uint64_t{record.operands} << 24 |
               uint64_t{record.source_pipe} << 32 | uint64_t{record.target_pipe} << 40 | uint64_t{record.flag_id} << 48),
          tail(uint64_t{record.repeats} | uint64_t{record.burst_bytes} << 32) {}
};

uint64_t span(const Operand &operand) { return uint64_t{operand.extent_bytes} | uint64_t{operand.stride} << 32; }

uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

uint64_t hash_of(const Record &record, const Operand *operands) {
    const Words words(record);
    uint64_t hash = mixed(mixed(0, words.head), words.tail);
    for (uint32_t i = 0; i < record.operands; ++i) hash = mixed(hash, span(operands[i]) ^ uint64_t{operands[i].space} << 28);
    return hash;
}

bool same_but_for_addresses(const Entry &entry, const Record &record, const Operand *operands) {
    const Words a(entry.record), b(record);
    if (a.head != b.head || a.tail != b.tail) return false;
    for (uint32_t i = 0; i < record.operands; ++i) {
        if (span(entry.operands[i]) != span(operands[i]) || entry.operands[i].space != operands[i].space) return false;
    }
    return true;
}

// Which parts are not as foreseen.
uint8_t changes(const Site &site, const Record &record, const ScalarCounts &scalar, const Operand *operands) {
    uint8_t mask = 0;
    for (uint32_t i = 0; i < record.operands; ++i) {
        if (site.foreseen(i) != operands[i].address) mask |= static_cast<uint8_t>(1u << i);
    }
    if (site.scalar != scalar) mask |= kScalarChanged;
    return mask;
}

}  // namespace

void SegmentEncoder::begin() {
    bytes_.clear();
    sites_.clear();
    places_.fill(0);
    last_ = kNoSite;
}

void SegmentEncoder::put(uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<uint8_t>(number | 0x80));
    bytes_.push_back(static_cast<uint8_t>(number));
}

void SegmentEncoder::put_scalar(const ScalarCounts &before, const ScalarCounts &now) {
    uint64_t changed = 0;
    for (uint32_t i = 0; i < kScalarClassCount; ++i) changed |= uint64_t{before[i] != now[i]} << i;
    put(changed);
    for (uint32_t i = 0; i < kScalarClassCount; ++i) {
        if (before[i] != now[i]) put(now[i]);
    }
}

void SegmentEncoder::end_run() {
    if (run_ > 0) put(2 * run_ - 1);
    run_ = 0;
}

const std::vector<uint8_t> &SegmentEncoder::finish() {
    end_run();
    return bytes_;
}

void SegmentEncoder::add(const Record &record, const ScalarCounts &scalar, const Operand *operands) {
    const uint32_t next = last_ == kNoSite ? kNoSite : sites_[last_].site.entry.next;
    if (next != kNoSite) {
        Site &site = sites_[next].site;
        if (same_but_for_addresses(site.entry, record, operands) && changes(site, record, scalar, operands) == 0) {
            site.move_as_foreseen();
            last_ = next;
            ++run_;
            return;
        }
    }
    end_run();
    const uint64_t hash = hash_of(record, operands);
    size_t place = 0;
    const uint32_t found = find(record, operands, hash, place);
    if (last_ != kNoSite) sites_[last_].site.entry.next = static_cast<uint16_t>(found == kNoSite ? sites_.size() : found);
    found == kNoSite ? add_new(record, scalar, operands, hash, place) : add_changed(found, record, scalar, operands);
}

// A site for such a record after such a record as the last one, or the place for one.
uint32_t SegmentEncoder::find(const Record &record, const Operand *operands, uint64_t hash, size_t &place) const {
    const uint64_t in_place = mixed(last_ == kNoSite ? 0 : sites_[last_].hash, hash);
    for (place = in_place % kPlaces; places_[place] != 0; place = (place + 1) % kPlaces) {
        const Known &known = sites_[places_[place] - 1u];
        if (known.in_place == in_place && same_but_for_addresses(known.site.entry, record, operands)) return places_[place] - 1u;
    }
    return kNoSite;
}

void SegmentEncoder::add_new(const Record &record, const ScalarCounts &scalar, const Operand *operands, uint64_t hash, size_t place) {
    put(0);
    const auto *raw = reinterpret_cast<const uint8_t *>(&record);
    bytes_.insert(bytes_.end(), raw, raw + sizeof record);
    raw = reinterpret_cast<const uint8_t *>(operands);
    bytes_.insert(bytes_.end(), raw, raw + record.operands * sizeof(Operand));
    Known known{};
    put_scalar(known.site.scalar, scalar);
    known.site.scalar = scalar;
    known.site.entry.record = record;
    std::copy_n(operands, record.operands, known.site.entry.operands);
    known.hash = hash;
    known.in_place = mixed(last_ == kNoSite ? 0 : sites_[last_].hash, hash);
    last_ = static_cast<uint32_t>(sites_.size());
    sites_.push_back(known);
    places_[place] = static_cast<uint16_t>(last_ + 1);
}

void SegmentEncoder::add_changed(uint32_t index, const Record &record, const ScalarCounts &scalar, const Operand *operands) {
    Site &site = sites_[index].site;
    const uint8_t mask = changes(site, record, scalar, operands);
    put(2 * (uint64_t{index} + 1));
    bytes_.push_back(mask);
    for (uint32_t i = 0; i < record.operands; ++i) {
        const uint64_t foreseen = site.foreseen(i);
        if ((mask & 1u << i) != 0) {
            // Differences count modulo 2^56: the nearer way round.
            const auto difference = static_cast<int64_t>((operands[i].address - foreseen) << 8) >> 8;
            put(static_cast<uint64_t>(difference) << 1 ^ static_cast<uint64_t>(difference >> 63));
        }
        site.move(i, operands[i].address);
    }
    if ((mask & kScalarChanged) != 0) put_scalar(site.scalar, scalar);
    site.scalar = scalar;
    last_ = index;
}

}  // namespace asim
