#include "asim/timing/scalar_order.h"

#include <algorithm>

namespace asim {

namespace {

constexpr size_t kRememberedUses = 64;      // uses; beyond, they count as one that covers them all
constexpr size_t kTried = 2;            // uses that a repeated one is looked for among
constexpr auto kScalar = static_cast<uint8_t>(Pipe::S);
constexpr auto kAll = static_cast<uint8_t>(Pipe::ALL);

bool in_ub(const Operand &operand) { return operand.space == static_cast<uint64_t>(Space::Ub) && operand.extent_bytes > 0; }

constexpr auto kVector = static_cast<size_t>(Pipe::V);

uint32_t bit_of(const Operand &in_register) { return 1u << in_register.address / kResultRegisterBytes % kVectorRegisterCount; }

}  // namespace

void ScalarOrder::Uses::add(const Use &use) {
    if (next_ - first_ == kRememberedUses) return merge(use);
    if (repeats(use)) return;
    uses_.push_back({use, next_++});
    expected_ = uses_.size();
}

// One that covers them all and `use` takes their place.
void ScalarOrder::Uses::merge(const Use &use) {
    Use all = use;
    for (const Last &last : uses_) all = all.covering(last.use);
    clear();
    uses_.push_back({all, next_++});
}

// Whether it equals a use that may come next, which is then the last such one.
bool ScalarOrder::Uses::repeats(const Use &use) {
    for (size_t tried = 0; tried < std::min<size_t>(uses_.size(), kTried); ++tried) {
        if (expected_ >= uses_.size()) expected_ = 0;
        Last &last = uses_[expected_++];
        if (!(last.use == use)) continue;
        last.number = next_++;
        return true;
    }
    return false;
}

bool ScalarOrder::Uses::order(const Use &now) const {
    return std::any_of(uses_.begin(), uses_.end(), [&](const Last &last) {
        return now.overlaps(last.use) && (last.use.written | now.written) != 0;
    });
}

void ScalarOrder::Uses::forget_announced() {
    const auto announced = [&](const Last &last) { return last.number < announced_; };
    uses_.erase(std::remove_if(uses_.begin(), uses_.end(), announced), uses_.end());
    first_ = std::max(first_, announced_);
    announced_ = first_;
}

void ScalarOrder::Uses::clear() {
    uses_.clear();
    first_ = announced_ = next_;
}

void ScalarOrder::clear() {
    for (Uses &uses : others_) uses.clear();
    registers_ = {};
    own_.clear();
}

// Beyond what is remembered, writes count as one that covers them all, which a pipe comes after if it did so for all.
void ScalarOrder::Written::add(const Use &use) {
    if (since.size() == kRememberedUses) {
        const auto count = [](uint8_t &of_them) { of_them = of_them == kRememberedUses ? 1 : 0; };
        Use all = use;
        for (const Use &one : since) all = all.covering(one);
        since.assign(1, all);
        for (uint8_t &pipe : ordered) count(pipe);
        for (auto &source : announced) std::for_each(source.begin(), source.end(), count);
    }
    since.push_back(use);
}

void ScalarOrder::Written::clear() {
    since.clear();
    ordered = {};
    announced = {};
}

// Whether `now`, a use of that pipe, has to come after one that the pipe need not come after yet.
bool ScalarOrder::Written::order(const Use &now, size_t pipe) const {
    return std::any_of(since.begin() + static_cast<std::ptrdiff_t>(ordered[pipe]), since.end(),
                       [&](const Use &use) { return now.overlaps(use); });
}

void ScalarOrder::flag(const Record &record) {
    const size_t source = record.source_pipe, target = record.target_pipe;
    const bool set = record.op == Op::SetFlag;
    if (target == kScalar) {
        set ? others_[source].announce() : others_[source].forget_announced();
        if (source == kVector) set ? registers_.announce() : registers_.forget_announced();
    } else if (own_.since.empty()) {
        return;
    } else if (set) {
        own_.announced[source][target] = source == kScalar ? own_.count() : own_.ordered[source];
    } else {
        own_.ordered[target] = std::max(own_.ordered[target], own_.announced[source][target]);
    }
}

// The scalar unit has waited for all that the pipe was given.
void ScalarOrder::order_after(size_t pipe) {
    others_[pipe].clear();
    if (pipe == kVector) registers_ = {};
}

bool ScalarOrder::register_read(const Operand &operand) {
    const bool inserted = (registers_.set & bit_of(operand)) != 0;
    if (inserted) order_after(kVector);
    return inserted;
}

bool ScalarOrder::scalar_access(const Entry &entry) {
    const Operand &operand = entry.operands[0];
    if (operand.space == static_cast<uint64_t>(Space::Register)) return register_read(operand);
    if (!in_ub(operand)) return false;
    const Use now(operand, entry.record.repeats == 1);
    bool inserted = false;
    for (size_t pipe = 0; pipe < others_.size(); ++pipe) {
        if (!others_[pipe].order(now)) continue;
        order_after(pipe);
        inserted = true;
    }
    if (now.written != 0) own_.add(now);
    return inserted;
}

bool ScalarOrder::instruction(const Entry &entry) {
    const auto pipe = static_cast<size_t>(entry.pipe);
    bool inserted = false;
    for (uint32_t known = entry.known, i = 0; known != 0; known >>= 1, ++i) {
        const Operand &operand = entry.operands[i];
        if ((known & 1) == 0 || operand.space != static_cast<uint64_t>(Space::Ub)) continue;
        const Use now(operand, i == 0);
        inserted |= !own_.since.empty() && own_.order(now, pipe);
        others_[pipe].add(now);
    }
    if (sets_register(entry.record)) registers_.add(bit_of(register_set_by(entry.record)));
    if (inserted) own_.ordered[pipe] = own_.count();
    return inserted;
}

bool ScalarOrder::next(const Entry &entry) {
    const Record &record = entry.record;
    if (record.op == Op::SyncAll || (record.op == Op::PipeBarrier && record.target_pipe == kAll)) clear();
    if (record.op == Op::ScalarAccess) return scalar_access(entry);
    return record.operands > 0 && instruction(entry);
}

}  // namespace asim
