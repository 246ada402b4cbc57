#include "asim/timing/trace_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace asim {

namespace {

constexpr uint32_t kMaxBlocks = 3 * 65535;  // numBlocks limit (facts/npu_2201.md section 8), three cores in a group

void check(bool holds, const char *what) {
    if (!holds) throw std::runtime_error(std::string("malformed trace: ") + what);
}

void check_record(const Record &record) {
    check(record.op < Op::Count, "unknown instruction");
    check(record.operands <= kMaxOperands, "too many operands");
    check(record.source_pipe <= static_cast<uint8_t>(Pipe::ALL), "unknown source pipe");
    check(record.target_pipe <= static_cast<uint8_t>(Pipe::ALL), "unknown target pipe");
    if (record.op == Op::SetFlag || record.op == Op::WaitFlag) {
        check(record.source_pipe < kPipeCount && record.target_pipe < kPipeCount, "a flag is between two pipes");
    }
    if (record.op == Op::CrossCoreSet || record.op == Op::CrossCoreWait) {
        check(record.flag_id < kCrossCoreFlags, "unknown flag between cores");
        check(record.repeats <= static_cast<uint32_t>(CrossCoreMode::Direct), "unknown mode of a flag between cores");
        check(record.source_pipe < kPipeCount, "a flag between cores belongs to one pipe");
    }
}

void check_operands(const Entry &entry) {
    for (uint32_t i = 0; i < entry.record.operands; ++i) check(entry.operands[i].space < kSpaceCount, "unknown memory");
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

bool Cursor::next(Entry &entry) {
    while (segment_ < segments_->size()) {
        const Trace::Segment &segment = (*segments_)[segment_];
        if (position_ == nullptr) position_ = segment.begin;
        if (position_ < segment.end) {
            check(static_cast<size_t>(segment.end - position_) >= sizeof(Record), "cut record");
            std::memcpy(&entry.record, position_, sizeof(Record));
            check_record(entry.record);
            last_ = position_;
            position_ += sizeof(Record);
            const size_t bytes = entry.record.operands * sizeof(Operand);
            check(static_cast<size_t>(segment.end - position_) >= bytes, "cut operands");
            std::memcpy(entry.operands, position_, bytes);
            position_ += bytes;
            check_operands(entry);
            return true;
        }
        ++segment_;
        position_ = nullptr;
    }
    return false;
}

}  // namespace asim
