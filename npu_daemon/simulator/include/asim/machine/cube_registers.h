// Registers of a cube core that instructions take from besides their operands.
#pragma once
#include <cstdint>

namespace asim {

// The size of a feature map in L1 and what it is surrounded with (SetFmatrix).
struct FeatureMap {
    uint32_t height = 0;
    uint32_t width = 0;
    uint8_t pad_left = 0, pad_right = 0, pad_top = 0, pad_bottom = 0;
};

struct CubeRegisters {
    FeatureMap maps[2];                     // of the left and the right matrix
    uint64_t pad_value = 0;
    uint32_t load_boundary = 0;             // of SetLoadDataBoundary: bytes of L1 behind which 3D loads begin anew, or 0
    uint32_t load_repeats = 1, load_stride = 0;     // of SetLoadDataRepeat
    bool load_along_width = false;
    bool hf32 = false;
    bool hf32_ties_to_zero = false;
    uint64_t quant_scale = 0;               // of SetFixpipePreQuantFlag
    const uint8_t *quant_scales = nullptr;  // of SetFixPipeConfig: one for each column
    uint16_t nd_matrices = 1, nd_src_stride = 0, nd_dst_stride = 0;     // of SetFixpipeNz2ndFlag
};

}  // namespace asim
