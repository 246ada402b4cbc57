#include "asim/timing/trace_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <stdexcept>

namespace asim {

namespace {

constexpr uint32_t kMaxBlocks = 3 * 65535;  // numBlocks limit (docs/hardware.md section 8), three cores in a group

[[noreturn, gnu::cold, gnu::noinline]] void fail(const char *what) { throw std::runtime_error(std::string("malformed trace: ") + what); }

void check(bool holds, const char *what) {
    if (!holds) fail(what);
}

uint32_t least_operands(Op op) {
    if (op == Op::ScalarAccess) return 1;
    return reads_gm(op) || writes_gm(op) ? 2 : 0;
}

void check_record(const Record &record) {
    check(record.op < Op::Count, "unknown instruction");
    check(record.operands <= kMaxOperands, "too many operands");
    check(record.operands >= least_operands(record.op), "too few operands");
    check(record.source_pipe <= static_cast<uint8_t>(Pipe::ALL), "unknown source pipe");
    check(record.target_pipe <= static_cast<uint8_t>(Pipe::ALL), "unknown target pipe");
    if (record.op == Op::SetFlag || record.op == Op::WaitFlag) {
        check(record.source_pipe < kPipeCount && record.target_pipe < kPipeCount, "a flag is between two pipes");
    }
    if (info(record.op).pipe == Pipe::V) check(record.flag_id <= kVectorRegisterCount, "unknown vector register");
    if (record.op == Op::CrossCoreSet || record.op == Op::CrossCoreWait) {
        check(record.flag_id < kCrossCoreFlags, "unknown flag between cores");
        check(record.repeats <= static_cast<uint32_t>(CrossCoreMode::Direct), "unknown mode of a flag between cores");
        check(record.source_pipe < kPipeCount, "a flag between cores belongs to one pipe");
    }
}

void check_operands(const Entry &entry) {
    constexpr auto kRegister = static_cast<uint64_t>(Space::Register);
    for (uint32_t i = 0; i < entry.record.operands; ++i) {
        const uint64_t space = entry.operands[i].space;
        check(space < kSpaceCount || (space == kRegister && entry.record.op == Op::ScalarAccess), "unknown memory");
    }
}

RecordKind kind_of(Op op) {
    if (op == Op::SetFlag || op == Op::WaitFlag) return RecordKind::Flag;
    if (op == Op::ScalarAccess) return RecordKind::Access;
    if (reads_gm(op) || writes_gm(op)) return RecordKind::Copy;
    const bool ordering = info(op).pipe == Pipe::V || op == Op::PipeBarrier || op == Op::SyncAll;
    return ordering ? RecordKind::Ordering : RecordKind::Other;
}

// Bursts of a strided copy leave gaps in global memory that other copies may fill.
uint8_t known_operands(const Entry &entry) {
    const Record &record = entry.record;
    const bool in_bursts = entry.kind == RecordKind::Copy && record.repeats > 1;
    uint8_t known = 0;
    for (uint32_t i = 0; i < record.operands; ++i) {
        const Operand &operand = entry.operands[i];
        const bool gaps = in_bursts && operand.space == static_cast<uint64_t>(Space::Gm) && operand.stride != record.burst_bytes;
        if (!gaps && operand.extent_bytes > 0) known |= static_cast<uint8_t>(1u << i);
    }
    return known;
}

Pipe pipe_of(const Record &record) {
    const auto source = static_cast<Pipe>(record.source_pipe), target = static_cast<Pipe>(record.target_pipe);
    switch (record.op) {
        case Op::SetFlag:
        case Op::CrossCoreSet: return source;
        case Op::WaitFlag: return target;
        case Op::PipeBarrier: return target == Pipe::ALL ? Pipe::S : target;
        default: return info(record.op).pipe;
    }
}

}  // namespace

Trace::Trace(const std::string &path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    check(fd >= 0 && fstat(fd, &info) == 0, "cannot be opened");
    bytes_ = static_cast<uint64_t>(info.st_size);
    void *mapped = bytes_ >= sizeof(TraceHeader) ? mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    check(mapped != MAP_FAILED, "too short");
    data_ = static_cast<const uint8_t *>(mapped);
    TraceHeader header;
    std::memcpy(&header, data_, sizeof header);
    check(std::memcmp(header.magic, kTraceMagic, sizeof header.magic) == 0, "wrong magic");
    check(header.version == kTraceVersion, "wrong version");
    check(header.block_count >= 1 && header.block_count <= kMaxBlocks, "block count out of range");
    composition_ = header.composition;
    const uint32_t cores = composition_.cores();
    check(composition_.cubes <= 1 && composition_.vectors <= 2 && cores > 0 && header.block_count % cores == 0, "impossible groups of cores");
    segments_.resize(header.block_count);
    index(data_ + sizeof header, data_ + bytes_);
}

Trace::~Trace() { munmap(const_cast<uint8_t *>(data_), bytes_); }

void Trace::index(const uint8_t *begin, const uint8_t *end) {
    while (begin < end) {
        SegmentHeader header;
        check(static_cast<size_t>(end - begin) >= sizeof header, "cut segment header");
        std::memcpy(&header, begin, sizeof header);
        begin += sizeof header;
        check(header.block_index < segments_.size(), "block out of range");
        check(static_cast<size_t>(end - begin) >= header.bytes, "cut segment");
        segments_[header.block_index].push_back({begin, begin + header.bytes});
        begin += header.bytes;
    }
}

bool Cursor::open_segment() {
    if (next_segment_ == segments_->size()) return false;
    const Trace::Segment &segment = (*segments_)[next_segment_++];
    position_ = segment.begin;
    end_ = segment.end;
    sites_.clear();
    site_count_ = 0;
    last_ = kNoSite;
    return true;
}

void Cursor::take(void *to, size_t bytes) {
    check(static_cast<size_t>(end_ - position_) >= bytes, "cut record");
    std::memcpy(to, position_, bytes);
    position_ += bytes;
}

uint64_t Cursor::number() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
        uint8_t part;
        take(&part, 1);
        value |= uint64_t{part & 0x7fu} << shift;
        if (part < 0x80) return value;
    }
    throw std::runtime_error("malformed trace: endless number");
}

uint16_t Cursor::number_of_flag(const Record &record) {
    const uint32_t number = flags_.find_or_insert(uint64_t{record.flag_id} << 6 | record.source_pipe << 3 | record.target_pipe);
    check(number <= std::numeric_limits<uint16_t>::max(), "too many flags");
    return static_cast<uint16_t>(number);
}

// Counts that are not as they were.
void Cursor::read_scalar(Site &site) {
    const uint64_t changed = number();
    check(changed >> kScalarClassCount == 0, "unknown class of scalar work");
    for (uint32_t i = 0; i < kScalarClassCount; ++i) {
        if ((changed >> i & 1) == 0) continue;
        site.scalar[i] = static_cast<uint32_t>(number());
    }
    site.scalar_cycles = kUnknownCycles;
}

void Cursor::read_record() {
    Site site;
    take(&site.entry.record, sizeof site.entry.record);
    check_record(site.entry.record);
    take(site.entry.operands, site.entry.record.operands * sizeof(Operand));
    check_operands(site.entry);
    read_scalar(site);
    site.entry.pipe = pipe_of(site.entry.record);
    site.entry.kind = kind_of(site.entry.record.op);
    site.entry.known = known_operands(site.entry);
    if (site.entry.kind == RecordKind::Flag) site.entry.flag = number_of_flag(site.entry.record);
    const auto index = static_cast<uint16_t>(site_count_++ % kMaxSites);
    if (index == sites_.size()) {
        sites_.push_back(site);
    } else {
        sites_[index] = site;
    }
    go_to(index);
}

// That site comes next, and is foreseen to follow the last one again.
void Cursor::go_to(uint16_t index) {
    if (last_ != kNoSite) sites_[last_].entry.next = index;
    last_ = index;
    next_ = sites_[last_].entry.next;
}

void Cursor::read_changes(uint64_t index) {
    check(index < sites_.size(), "unknown site");
    go_to(static_cast<uint16_t>(index));
    Site &site = sites_[index];
    uint8_t mask;
    take(&mask, 1);
    for (uint32_t i = 0; i < site.entry.record.operands; ++i) {
        const uint64_t difference = (mask & 1u << i) == 0 ? 0 : number();
        site.move(i, (site.foreseen(i) + (difference >> 1 ^ (0 - (difference & 1)))) & kAddressMask);
    }
    if ((mask & kScalarChanged) != 0) read_scalar(site);
}

void Cursor::follow() {
    if (next_ == kNoSite) fail("nothing is foreseen");
    last_ = next_;
    Site &site = sites_[last_];
    next_ = site.entry.next;
    site.move_as_foreseen();
    --run_;
}

// Records as foreseen are of sites that were there before: they are left out.
bool Cursor::scalar_meets_pipes() const {
    for (Cursor rest = *this;;) {
        while (rest.position_ == rest.end_) {
            if (!rest.open_segment()) return false;
        }
        const uint64_t code = rest.number();
        if (code == 0) {
            rest.read_record();
            const Entry &entry = rest.sites_[rest.last_].entry;
            if (entry.record.op == Op::ScalarAccess && entry.operands[0].space != static_cast<uint64_t>(Space::Gm)) return true;
        } else if (code % 2 == 0) {
            rest.read_changes(code / 2 - 1);
        }
    }
}

// Reads the code of the next records and makes the first of them the last one; false at the end.
bool Cursor::read_code() {
    while (position_ == end_) {
        if (!open_segment()) return false;
    }
    const uint64_t code = number();
    if (code == 0) {
        read_record();
    } else if (code % 2 == 0) {
        read_changes(code / 2 - 1);
    } else {
        check(last_ != kNoSite, "nothing is foreseen");
        run_ = code / 2 + 1;
        follow();
    }
    return true;
}

}  // namespace asim
