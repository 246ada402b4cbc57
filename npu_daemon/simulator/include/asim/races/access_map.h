// Who touched which bytes last: disjoint pieces of an address range, each with a state.
#pragma once
#include <cstdint>
#include <iterator>
#include <map>

namespace asim {

template <typename State>
class AccessMap {
public:
    // Calls f(state, from, to) for each piece of [begin, end), which are split, made and joined as needed.
    template <typename F>
    void update(uint64_t begin, uint64_t end, F f) {
        auto piece = split(begin);
        for (uint64_t at = begin; at < end; ++piece) {
            if (piece == pieces_.end() || piece->first > at) {
                const uint64_t next = piece == pieces_.end() || piece->first > end ? end : piece->first;
                piece = pieces_.insert(piece, {at, Piece{next, State{}}});
            } else if (piece->second.end > end) {
                split(end);
            }
            f(piece->second.state, at, piece->second.end);
            at = piece->second.end;
            piece = join_with_previous(piece);
        }
    }

    // Likewise for the pieces there are, without changing them; stops when f returns false.
    template <typename F>
    void visit(uint64_t begin, uint64_t end, F f) const {
        auto piece = pieces_.upper_bound(begin);
        if (piece != pieces_.begin() && std::prev(piece)->second.end > begin) --piece;
        for (; piece != pieces_.end() && piece->first < end; ++piece) {
            const uint64_t from = piece->first > begin ? piece->first : begin;
            const uint64_t to = piece->second.end < end ? piece->second.end : end;
            if (!f(piece->second.state, from, to)) return;
        }
    }

    // Makes one piece of [begin, end), joined with the one before it when their states are equal.
    void assign(uint64_t begin, uint64_t end, const State &state) {
        auto next = split(begin);
        if (next != pieces_.end() && next->first == begin && next->second.end == end) {     // as buffers are filled again and again
            next->second.state = state;
            return;
        }
        while (next != pieces_.end() && next->first < end) {
            if (next->second.end > end) split(end);
            next = pieces_.erase(next);
        }
        join_with_previous(pieces_.insert(next, {begin, Piece{end, state}}));
    }

    // Drops the pieces whose state no later access can be in conflict with.
    template <typename F>
    void forget(F settled) {
        for (auto piece = pieces_.begin(); piece != pieces_.end();) {
            piece = settled(piece->second.state) ? pieces_.erase(piece) : std::next(piece);
        }
    }

    // Calls f(state) for each piece there is.
    template <typename F>
    void update_all(F f) {
        for (auto &piece : pieces_) f(piece.second.state);
    }

    size_t size() const { return pieces_.size(); }

private:
    struct Piece {
        uint64_t end;
        State state;
    };
    using Pieces = std::map<uint64_t, Piece>;

    // Returns the first piece at or after `at`, after cutting the one that lies across it.
    typename Pieces::iterator split(uint64_t at) {
        auto next = pieces_.lower_bound(at);
        if (next != pieces_.end() && next->first == at) return next;
        if (next != pieces_.begin()) {
            const auto before = std::prev(next);
            if (before->second.end > at) {
                next = pieces_.insert(next, {at, before->second});
                before->second.end = at;
            }
        }
        return next;
    }

    typename Pieces::iterator join_with_previous(typename Pieces::iterator piece) {
        if (piece == pieces_.begin()) return piece;
        const auto before = std::prev(piece);
        if (before->second.end != piece->first || !(before->second.state == piece->second.state)) return piece;
        before->second.end = piece->second.end;
        pieces_.erase(piece);
        return before;
    }

    Pieces pieces_;
};

}  // namespace asim
