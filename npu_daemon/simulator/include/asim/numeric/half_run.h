// Conversion of runs of elements between half and float, eight at a time where the host can.
#pragma once
#include <cstdint>

#include "asim/numeric/types.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace asim {

inline void convert_run(half *out, const float *in, uint32_t count) {
    uint32_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    for (; i < count; ++i) out[i] = static_cast<half>(in[i]);
}

inline void convert_run(float *out, const half *in, uint32_t count) {
    uint32_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(in + i))));
    }
#endif
    for (; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

}  // namespace asim
