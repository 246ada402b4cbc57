#include "host_tiling_matmul_l1.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace asim::host {
namespace {

constexpr int64_t kReservedL1Bytes = 256;
constexpr int32_t kMte1Loads = 32;      // what the queue of MTE1 takes (docs/hardware.md section 2)

int64_t to_bytes(double value) { return static_cast<int64_t>(std::ceil(value)); }

// The largest number up to `most` that divides `whole`, at least 1.
int32_t factor_below(int32_t whole, int64_t most) {
    int32_t factor = static_cast<int32_t>(std::clamp<int64_t>(most, 1, whole));
    while (whole % factor != 0) --factor;
    return factor;
}

// One operand of a core, in base blocks.
struct Side {
    int64_t block_bytes;
    int64_t bias_bytes;         // that come with its columns
    int32_t padding;            // L1 that it takes, as a multiple of its bytes, where it has to be turned
    int32_t across;             // base blocks of its rows or columns
    int32_t most_along_k;       // base blocks that the queue of MTE1 can hold the loads of
    double extent;              // its rows or columns, in fractals
};

constexpr size_t kLeft = 0, kRight = 1;
using Loads = std::array<OperandLoads, 2>;

struct Choice {
    Loads loads;
    double copied;              // rows and columns from global memory, for each step along k
};

class L1Search {
public:
    L1Search(const MatmulProblem &problem, const MatmulPlan &plan)
        : problem_(problem), plan_(plan), room_(problem.memories.l1), rounds_(ceil_div(plan.single.k, plan.base.k)) {
        const Extents &base = plan.base;
        const bool turned_a = problem.a_bytes == 4 || (problem.a_bytes == 1 && problem.a_transposed);
        const bool turned_b = problem.b_bytes == 4 || (problem.b_bytes == 1 && !problem.b_transposed);
        const int64_t bias = problem.has_bias ? to_bytes(base.n * problem.bias_bytes) : 0;
        sides_[kLeft] = side(base.m, plan.single.m, problem.a_bytes, 0, turned_a);
        sides_[kRight] = side(base.n, plan.single.n, problem.b_bytes, bias, turned_b);
    }

    std::optional<L1Loads> best() const {
        if (!fits({OperandLoads{1, 1, 1}, OperandLoads{1, 1, 1}})) return std::nullopt;
        Choice best = keep_neither();
        for (const std::optional<Choice> &other : {keep(kLeft), keep(kRight), keep_both()}) {
            if (other && better(*other, best)) best = *other;
        }
        return L1Loads{best.loads[kLeft], best.loads[kRight], bytes(best.loads, false)};
    }

private:
    Side side(int32_t base, int32_t single, double element_bytes, int64_t bias_bytes, bool turned) const {
        const int32_t across = ceil_div(base, kFractal), along_k = ceil_div(to_bytes(plan_.base.k * problem_.a_bytes), kBlockBytes);
        const int32_t both = (plan_.base.n <= kFractal ? 1 : along_k) + (along_k == 1 ? 1 : ceil_div(plan_.base.m, kFractal));
        const int32_t most = std::max(kMte1Loads / both, ceil_div(ceil_div(kMte1Loads, across), along_k));
        return {to_bytes(base * element_bytes * plan_.base.k), bias_bytes, turned ? 2 : 1, ceil_div(single, base), most,
                std::ceil(single / static_cast<double>(kFractal))};
    }

    int64_t bytes(const Loads &loads, bool padded) const {
        int64_t total = 0;
        for (const size_t i : {kLeft, kRight}) {
            const Side &side = sides_[i];
            total += int64_t{loads[i].blocks()} * side.block_bytes * (padded ? side.padding : 1);
            total += int64_t{loads[i].across} * loads[i].buffers * side.bias_bytes;
        }
        return total;
    }

    bool fits(const Loads &loads) const { return bytes(loads, true) <= room_; }

    // Base blocks that operand `i` may have in each buffer beside the other one.
    int64_t room_for(size_t i, const Loads &loads) const {
        Loads others = loads;
        others[i].along_k = 0;
        return (room_ - bytes(others, false)) / (sides_[i].block_bytes * loads[i].buffers);
    }

    static bool better(const Choice &one, const Choice &other) {
        const auto across = [](const Choice &choice) { return choice.loads[kLeft].across + choice.loads[kRight].across; };
        return one.copied < other.copied || (one.copied == other.copied && across(one) >= across(other));
    }

    std::optional<Choice> keep_both() const {
        const Loads loads{OperandLoads{rounds_, sides_[kLeft].across, 1}, OperandLoads{rounds_, sides_[kRight].across, 1}};
        if (!fits(loads)) return std::nullopt;
        return Choice{loads, sides_[kLeft].extent + sides_[kRight].extent};
    }

    // All of operand `kept` stays in L1; the other one passes, in two buffers if they fit.
    std::optional<Choice> keep(size_t kept) const {
        const size_t passes = 1 - kept;
        const Side &side = sides_[passes];
        Loads loads{OperandLoads{1, 1, 1}, OperandLoads{1, 1, 1}};
        loads[kept] = {rounds_, sides_[kept].across, 1};
        if (!fits(loads)) return std::nullopt;
        OperandLoads &passing = loads[passes];
        passing.buffers = 2;
        if (!fits(loads)) passing.buffers = 1;
        const int64_t room = room_for(passes, loads);
        if (room < 1) return std::nullopt;
        passing.along_k = factor_below(rounds_, std::min<int64_t>(room, side.most_along_k));
        const bool whole_k = passing.along_k == rounds_;
        if (whole_k) passing.across = factor_below(side.across, room / rounds_);
        if (whole_k && passing.across == side.across) passing.buffers = 1;
        return Choice{loads, sides_[kept].extent + (whole_k ? 1 : sides_[kept].across) * side.extent};
    }

    Choice keep_neither() const {
        Loads loads{};
        for (const size_t i : {kRight, kLeft}) {
            if (!fits(loads)) loads[i].buffers = 1;
        }
        if (rounds_ > 1) choose_along_k(loads);
        const Choice rows = widen(loads, kLeft), columns = widen(loads, kRight);
        const bool whole_a = loads[kLeft].along_k == rounds_, whole_b = loads[kRight].along_k == rounds_;
        if (whole_a && whole_b) return columns.copied > rows.copied ? rows : columns;
        if (!whole_a && !whole_b) {
            const Loads &wide = rows.loads;
            return {loads, sides_[kLeft].extent * ceil_div(sides_[kRight].across, wide[kRight].across) +
                               sides_[kRight].extent * ceil_div(sides_[kLeft].across, wide[kLeft].across)};
        }
        Choice choice = whole_a ? rows : columns;
        choice.loads[whole_a ? kRight : kLeft].across = 1;
        return choice;
    }

    // The operand whose rows lie along k is loaded in longer rows: it gets the room first, the other as much as MTE1's queue takes.
    void choose_along_k(Loads &loads) const {
        if (problem_.a_transposed && !problem_.b_transposed) return share_k(loads);
        const bool left = problem_.b_transposed && !problem_.a_transposed ? plan_.base.m > plan_.base.n : !problem_.a_transposed;
        const size_t first = left ? kLeft : kRight, second = 1 - first;
        loads[first].along_k = factor_below(rounds_, room_for(first, loads));
        loads[second].along_k = factor_below(rounds_, std::min<int64_t>(room_for(second, loads), sides_[second].most_along_k));
        const bool left_longer = loads[kLeft].along_k > loads[kRight].along_k;
        int32_t &longer = loads[left_longer ? kLeft : kRight].along_k;
        const int32_t shorter = loads[left_longer ? kRight : kLeft].along_k;
        while (longer % shorter != 0 || (longer != shorter && rounds_ % longer != 0)) --longer;
    }

    // Neither operand's rows lie along k.
    void share_k(Loads &loads) const {
        loads[kRight].along_k = rounds_;
        if (fits(loads)) {
            loads[kLeft].along_k = factor_below(rounds_, std::min<int64_t>(room_for(kLeft, loads), sides_[kLeft].most_along_k));
            return;
        }
        int64_t of_both = 0, room = room_;
        int32_t most = 1;
        for (const size_t i : {kLeft, kRight}) {
            of_both += sides_[i].block_bytes * loads[i].buffers;
            room -= sides_[i].bias_bytes * loads[i].buffers;
            most = std::max(most, sides_[i].most_along_k);
        }
        loads[kLeft].along_k = loads[kRight].along_k = factor_below(rounds_, std::min<int64_t>(room / of_both, most));
    }

    // As many rows and columns a copy as fit, those of operand `first` before the others.
    Choice widen(Loads loads, size_t first) const {
        const size_t second = 1 - first;
        for (const size_t i : {first, second}) {
            loads[i].across = factor_below(sides_[i].across, room_for(i, loads) / loads[i].along_k);
        }
        const int32_t times = ceil_div(sides_[first].across, loads[first].across);
        return {loads, sides_[first].extent + sides_[second].extent * times};
    }

    const MatmulProblem &problem_;
    const MatmulPlan &plan_;
    int64_t room_;
    int32_t rounds_;
    std::array<Side, 2> sides_;
};

// Blocks along k of one load: such that rows are of whole lines, or of halves of lines.
int32_t in_whole_lines(int32_t steps, double row_bytes, int32_t rounds) {
    if (steps >= rounds) return rounds;
    for (const int32_t line : {512, 256}) {
        const int32_t rows_in_line = static_cast<int32_t>(line / row_bytes);
        if (steps * row_bytes > line && rows_in_line * row_bytes == line) return std::max(1, steps / rows_in_line * rows_in_line);
    }
    return steps;
}

// Half of L1 for each operand, in two buffers, or a quarter for the smaller one where halves do not fit (CalcL1Tiling,
// UpdateStepK).
std::optional<L1Loads> halves_of_l1(const MatmulProblem &problem, const MatmulPlan &plan) {
    const double block_a = plan.base.m * problem.a_bytes * plan.base.k, block_b = plan.base.n * problem.b_bytes * plan.base.k;
    const double room = static_cast<double>(problem.memories.l1) - (problem.has_bias ? plan.base.n * problem.bias_bytes : 0);
    int32_t depth_a = static_cast<int32_t>(problem.memories.l1 / 2.0 / block_a);
    int32_t depth_b = static_cast<int32_t>((problem.memories.l1 + kReservedL1Bytes) / 2.0 / block_b);
    if (depth_a * block_a + depth_b * block_b > room) (plan.base.m <= plan.base.n ? depth_a : depth_b) /= 2;
    const int32_t rounds = ceil_div(plan.single.k, plan.base.k);
    int32_t a = in_whole_lines(depth_a / 2, plan.base.k * problem.a_bytes, rounds);
    int32_t b = in_whole_lines(depth_b / 2, plan.base.k * problem.b_bytes, rounds);
    if (a <= 0 || b <= 0) return std::nullopt;
    (a >= b ? a : b) = a >= b ? a / b * b : b / a * a;
    const int32_t loads_a = ceil_div(rounds, a), loads_b = ceil_div(rounds, b);
    if (loads_a % loads_b != 0 && loads_b % loads_a != 0) return std::nullopt;
    return L1Loads{{a, 1, 2}, {b, 1, 2}, to_bytes(2 * a * block_a) + to_bytes(2 * b * block_b)};
}

}  // namespace

std::optional<L1Loads> plan_l1(const MatmulProblem &problem, const MatmulPlan &plan, bool large) {
    std::optional<L1Loads> loads;
    if (large) loads = halves_of_l1(problem, plan);
    return loads ? loads : L1Search(problem, plan).best();
}

bool saves_more_columns_first(const MatmulPlan &plan) {
    const int32_t rounds = ceil_div(plan.single.k, plan.base.k);
    const bool whole_a = plan.loads.a.along_k >= rounds, whole_b = plan.loads.b.along_k >= rounds;
    if (!whole_a || !whole_b) return whole_a;
    const int64_t m = plan.single.m, n = plan.single.n;
    const int64_t rows_kept = m + n * ceil_div(m, int64_t{plan.loads.a.across} * plan.base.m);
    const int64_t columns_kept = n + m * ceil_div(n, int64_t{plan.loads.b.across} * plan.base.n);
    return rows_kept < columns_kept;
}

}  // namespace asim::host
