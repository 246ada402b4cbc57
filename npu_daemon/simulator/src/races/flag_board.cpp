#include "asim/races/flag_board.h"

namespace asim {

namespace {

constexpr uint32_t kSyncOfKind = kCrossCoreFlags;           // beside the flags: SyncAll of the cores of a kind
constexpr uint32_t kSyncOfAllKinds = kCrossCoreFlags + 1;

}  // namespace

uint32_t FlagBoard::slot_of(const Record &record) {
    if (record.op != Op::SyncAll) return record.flag_id;
    return record.flag_id == kSyncAllKinds ? kSyncOfAllKinds : kSyncOfKind;
}

// What those of [first, last) that meet know together, once they have all come; else null.
template <typename Meets>
std::shared_ptr<const Knowledge> FlagBoard::meet(uint32_t first, uint32_t last, uint32_t slot, const Meets &meets) {
    for (uint32_t core = first; core < last; ++core) {
        if (!meets(core)) continue;
        const auto found = sets_.find(key(core, slot));
        if (found == sets_.end() || found->second.empty()) return nullptr;
    }
    auto together = std::make_shared<Knowledge>();
    for (uint32_t core = first; core < last; ++core) {
        if (!meets(core)) continue;
        auto &posts = sets_[key(core, slot)];
        together->add(*posts.front());
        posts.pop_front();
    }
    return together;
}

void FlagBoard::set(uint32_t from, const Record &record, const Knowledge &known) {
    const uint32_t slot = slot_of(record);
    const uint32_t group = from / composition_.cores() * composition_.cores();
    const auto mode = static_cast<CrossCoreMode>(record.repeats);
    const auto post = std::make_shared<const Knowledge>(known);
    if (record.op == Op::CrossCoreSet && mode == CrossCoreMode::Direct) {
        if (record.burst_bytes < composition_.cores()) arrived_[key(group + record.burst_bytes, slot)].push_back(post);
        return;
    }
    const bool everywhere = record.op == Op::SyncAll || mode == CrossCoreMode::AllOfKind;
    const bool all_kinds = slot == kSyncOfAllKinds;
    const bool crosses = record.op == Op::CrossCoreSet && mode == CrossCoreMode::Group;
    const uint32_t first = everywhere ? 0 : group, last = everywhere ? cores_ : group + composition_.cores();
    const auto same_kind = [&](uint32_t core) { return all_kinds || cube(core) == cube(from); };
    sets_[key(from, slot)].push_back(post);
    const auto together = meet(first, last, slot, same_kind);
    for (uint32_t core = first; together != nullptr && core < last; ++core) {
        if (same_kind(core) != crosses) arrived_[key(core, slot)].push_back(together);
    }
}

bool FlagBoard::arrived(uint32_t core, const Record &record) const {
    const auto found = arrived_.find(key(core, slot_of(record)));
    return found != arrived_.end() && !found->second.empty();
}

std::shared_ptr<const Knowledge> FlagBoard::take(uint32_t core, const Record &record) {
    auto &posts = arrived_[key(core, slot_of(record))];
    const auto first = posts.front();
    posts.pop_front();
    return first;
}

}  // namespace asim
