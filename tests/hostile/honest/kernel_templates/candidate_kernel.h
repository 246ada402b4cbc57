// Templates, policies, compile-time tables and lambdas.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>
#include "honest.h"

namespace candidate {
template <typename T, uint32_t kUnroll>
struct Traits {
    using type = T;
    static constexpr uint32_t unroll = kUnroll;
    static constexpr uint32_t lanes = 256 / sizeof(T);
};

struct Scale {
    static constexpr float value = 2.0f;
    template <typename Tensor>
    __aicore__ static inline void Apply(const Tensor& y, const Tensor& x, uint32_t count)
    {
        AscendC::Muls(y, x, value, count);
    }
};

struct Shift {
    static constexpr float value = 1.0f;
    template <typename Tensor>
    __aicore__ static inline void Apply(const Tensor& y, const Tensor& x, uint32_t count)
    {
        AscendC::Adds(y, x, value, count);
    }
};

template <typename First, typename... Rest>
struct Chain {
    template <typename Tensor>
    __aicore__ static inline void Apply(const Tensor& y, const Tensor& x, uint32_t count)
    {
        First::Apply(y, x, count);
        (Rest::Apply(y, y, count), ...);
    }
};

constexpr uint32_t Factorial(uint32_t n)
{
    return n < 2 ? 1 : n * Factorial(n - 1);
}

template <uint32_t... kIndex>
constexpr uint32_t Sum(std::integer_sequence<uint32_t, kIndex...>)
{
    return (kIndex + ... + 0U);
}

enum class Mode : uint8_t { plain, fused };

template <typename Derived>
class Base : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        (void)offset;
        static_cast<Derived*>(this)->Run(y, x, count);
    }
};
} // namespace candidate

class Candidate : public candidate::Base<Candidate> {
public:
    template <typename Tensor>
    __aicore__ inline void Run(const Tensor& y, const Tensor& x, uint32_t count)
    {
        using T = candidate::Traits<float, 4>;
        constexpr uint32_t table[] = {candidate::Factorial(3), candidate::Sum(std::make_integer_sequence<uint32_t, 4>{})};
        static_assert(table[0] == 6 && table[1] == 6 && std::is_same_v<T::type, float>);
        const auto apply = [&](auto policy) { decltype(policy)::Apply(y, x, count); };
        if constexpr (kMode == candidate::Mode::fused) {
            apply(candidate::Chain<candidate::Scale, candidate::Shift>{});
        } else {
            apply(candidate::Scale{});
        }
    }

private:
    static constexpr candidate::Mode kMode = candidate::Mode::fused;
};
