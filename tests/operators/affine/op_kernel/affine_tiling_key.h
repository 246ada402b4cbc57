// Template parameters of Affine, for host and kernel, and what the one hands to the other.
#ifndef AFFINE_TILING_KEY_H
#define AFFINE_TILING_KEY_H
#include "ascendc/host_api/tiling/template_argument.h"

struct AffineTilingData {
    uint32_t count;     // elements of the tensor
    uint32_t coreCount; // elements of one core, a multiple of a tile
};

namespace AffineKeys {
constexpr uint32_t TILE_BYTES = 4096;
#define AFFINE_FLAT 7
#define AFFINE_TAIL 3

ASCENDC_TPL_ARGS_DECL(Affine,
    ASCENDC_TPL_DATATYPE_DECL(D_T, C_DT_FLOAT16, C_DT_FLOAT, ASCENDC_TPL_INPUT(0)),
    ASCENDC_TPL_UINT_DECL(SHAPE, ASCENDC_TPL_2_BW, ASCENDC_TPL_UI_LIST, AFFINE_FLAT, AFFINE_TAIL),
    ASCENDC_TPL_UINT_DECL(BUFFERS, ASCENDC_TPL_8_BW, ASCENDC_TPL_UI_MIX, 1, 1, 2, 4),
    ASCENDC_TPL_BOOL_DECL(SHIFT, 0, 1), );

ASCENDC_TPL_SEL(
    ASCENDC_TPL_ARGS_SEL(
        ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_AIV_ONLY),
        ASCENDC_TPL_DATATYPE_SEL(D_T, C_DT_FLOAT16),
        ASCENDC_TPL_UINT_SEL(SHAPE, ASCENDC_TPL_UI_LIST, AFFINE_FLAT, AFFINE_TAIL),
        ASCENDC_TPL_UINT_SEL(BUFFERS, ASCENDC_TPL_UI_RANGE, 1, 1, 2),
        ASCENDC_TPL_BOOL_SEL(SHIFT, 1)),
    ASCENDC_TPL_ARGS_SEL(
        ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_AIV_ONLY),
        ASCENDC_TPL_DATATYPE_SEL(D_T, C_DT_FLOAT),
        ASCENDC_TPL_UINT_SEL(SHAPE, ASCENDC_TPL_UI_LIST, AFFINE_FLAT),
        ASCENDC_TPL_BOOL_SEL(SHIFT, 1),
        ASCENDC_TPL_UINT_SEL(BUFFERS, ASCENDC_TPL_UI_LIST, 1, 2, 4),
        ASCENDC_TPL_TILING_STRUCT_SEL(AffineTilingData)), )
} // namespace AffineKeys
#endif // AFFINE_TILING_KEY_H
