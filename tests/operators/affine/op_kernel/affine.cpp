// Device side of Affine: y = 2 x + 1, a tile at a time; the element type, the buffers of a queue and whether there is a short tile
// are parameters of the kernel.
#include "kernel_operator.h"
#include "affine_tiling_key.h"

using namespace AffineKeys;

template <typename T, int SHAPE, int BUFFERS, bool SHIFT>
class KernelAffine {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const AffineTilingData& tiling)
    {
        begin = tiling.coreCount * AscendC::GetBlockIdx();
        end = begin + tiling.coreCount < tiling.count ? begin + tiling.coreCount : tiling.count;
        xGm.SetGlobalBuffer((__gm__ T*)x, tiling.count);
        yGm.SetGlobalBuffer((__gm__ T*)y, tiling.count);
        pipe.InitBuffer(inQueue, BUFFERS, TILE_BYTES);
        pipe.InitBuffer(outQueue, BUFFERS, TILE_BYTES);
    }

    __aicore__ inline void Process()
    {
        for (uint32_t first = begin; first < end; first += TILE) {
            if constexpr (SHAPE == AFFINE_TAIL) {
                Tile(first, end - first < TILE ? end - first : TILE);
            } else {
                Tile(first, TILE);
            }
        }
    }

private:
    static constexpr uint32_t TILE = TILE_BYTES / sizeof(T);

    __aicore__ inline void Tile(uint32_t first, uint32_t count)
    {
        AscendC::LocalTensor<T> x = inQueue.template AllocTensor<T>();
        AscendC::DataCopy(x, xGm[first], count);
        inQueue.EnQue(x);
        x = inQueue.template DeQue<T>();
        AscendC::LocalTensor<T> y = outQueue.template AllocTensor<T>();
        AscendC::Muls(y, x, (T)2.0f, count);
        AscendC::PipeBarrier<PIPE_V>();
        if constexpr (SHIFT) {
            AscendC::Adds(y, y, (T)1.0f, count);
        }
        outQueue.EnQue(y);
        inQueue.FreeTensor(x);
        y = outQueue.template DeQue<T>();
        AscendC::DataCopy(yGm[first], y, count);
        outQueue.FreeTensor(y);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFERS> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFERS> outQueue;
    AscendC::GlobalTensor<T> xGm, yGm;
    uint32_t begin;
    uint32_t end;
};

template <typename D_T, int SHAPE, int BUFFERS, bool SHIFT>
__global__ __aicore__ void affine(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(AffineTilingData);
    GET_TILING_DATA(tilingData, tiling);
    KernelAffine<D_T, SHAPE, BUFFERS, SHIFT> op;
    op.Init(x, y, tilingData);
    op.Process();
}
