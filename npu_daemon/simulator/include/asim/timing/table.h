// A hash table whose entries keep their index, in few pieces of memory: entries are pooled and chained.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace asim {

template <typename Value>
class Table {
public:
    static constexpr uint32_t kNone = 0;

    // `expected`: how many entries there may be before the table has to be made anew; for `most`, memory is set aside, which
    // the system provides as it is used.
    explicit Table(uint64_t expected, uint64_t most = 0) {
        entries_.reserve(most + 1);
        entries_.resize(1);
        uint64_t heads = 1;
        while (heads < expected) heads *= 2;
        heads_.resize(heads, kNone);
    }

    // Index of the entry, or kNone.
    uint32_t find(uint64_t key) const {
        uint32_t index = heads_[bucket(key)];
        while (index != kNone && entries_[index].key != key) index = entries_[index].next;
        return index;
    }

    // Adds an entry for a key that has none, and returns its index; the value is a fresh one.
    uint32_t insert(uint64_t key) {
        uint32_t index = free_;
        if (index == kNone) {
            index = static_cast<uint32_t>(entries_.size());
            entries_.emplace_back();
            if (index > heads_.size()) grow();
        } else {
            free_ = entries_[index].next;
            entries_[index].value = Value{};
        }
        entries_[index].key = key;
        link(index);
        return index;
    }

    uint32_t find_or_insert(uint64_t key) {
        const uint32_t index = find(key);
        return index == kNone ? insert(key) : index;
    }

    void erase(uint32_t index) {
        uint32_t *link = &heads_[bucket(entries_[index].key)];
        while (*link != index) link = &entries_[*link].next;
        *link = entries_[index].next;
        entries_[index].next = free_;
        free_ = index;
    }

    void clear() {
        for (size_t index = 1; index < entries_.size(); ++index) heads_[bucket(entries_[index].key)] = kNone;
        entries_.resize(1);
        free_ = kNone;
    }

    Value &operator[](uint32_t index) { return entries_[index].value; }
    const Value &operator[](uint32_t index) const { return entries_[index].value; }
    uint64_t key(uint32_t index) const { return entries_[index].key; }

private:
    struct Entry {
        uint64_t key = 0;
        uint32_t next = kNone;      // of the same bucket, or free
        Value value{};
    };
    // Keys that follow each other lie side by side.
    size_t bucket(uint64_t key) const { return (key ^ key >> 32) & (heads_.size() - 1); }

    void link(uint32_t index) {
        uint32_t &head = heads_[bucket(entries_[index].key)];
        entries_[index].next = head;
        head = index;
    }

    // Called when no entry is free: all but the newest, which has no key yet, are linked again.
    void grow() {
        heads_.assign(2 * heads_.size(), kNone);
        for (uint32_t index = 1; index + 1 < entries_.size(); ++index) link(index);
    }

    std::vector<Entry> entries_;    // entry 0 has no key: its value is the owner's
    std::vector<uint32_t> heads_;   // a power of two
    uint32_t free_ = kNone;
};

}  // namespace asim
