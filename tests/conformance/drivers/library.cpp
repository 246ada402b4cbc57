#include "machine.h"

#include "asim/machine/gm.h"

namespace {

AscendC::LocalTensor<uint8_t> bytes_at(int64_t offset_bytes, int64_t bytes) {
    return AscendC::LocalTensor<uint8_t>(asim::block().ub + offset_bytes, bytes, AscendC::TPosition::VECCALC);
}

// Arguments: dst, src, rows, columns, scratch, bytes.
template <typename T>
bool register_rows() {
    const std::string type = " " + type_name<T>();
    Register("BroadCast columns" + type, [](Arguments a) {
        const uint32_t to[] = {static_cast<uint32_t>(a[2]), static_cast<uint32_t>(a[3])}, from[] = {to[0], 1};
        AscendC::BroadCast<T, 2, 1>(tensor<T>(a[0]), tensor<T>(a[1]), to, from, bytes_at(a[4], a[5]));
    });
    Register("BroadCast rows" + type, [](Arguments a) {
        const uint32_t to[] = {static_cast<uint32_t>(a[2]), static_cast<uint32_t>(a[3])}, from[] = {1, to[1]};
        AscendC::BroadCast<T, 2, 0>(tensor<T>(a[0]), tensor<T>(a[1]), to, from, bytes_at(a[4], a[5]));
    });
    return true;
}

// Arguments: dst, src, rows, row stride, columns, scratch, bytes.
template <typename T>
bool register_sums() {
    const std::string type = " " + type_name<T>();
    Register("Sum" + type, [](Arguments a) {
        const AscendC::SumParams params{uint32_t(a[2]), uint32_t(a[3]), uint32_t(a[4])};
        AscendC::Sum(tensor<T>(a[0]), tensor<T>(a[1]), bytes_at(a[5], a[6]), params);
    });
    Register("Mean" + type, [](Arguments a) {
        const AscendC::MeanParams params{uint32_t(a[2]), uint32_t(a[3]), uint32_t(a[4])};
        AscendC::Mean<T>(tensor<T>(a[0]), tensor<T>(a[1]), bytes_at(a[5], a[6]), params);
    });
    // Arguments: dst, src, scalar, mask, rows, columns, mask columns, scratch, bytes.
    Register("SelectWithBytesMask tensor first" + type, [](Arguments a) {
        const AscendC::SelectWithBytesMaskShapeInfo info{uint32_t(a[4]), uint32_t(a[5]), uint32_t(a[6])};
        AscendC::SelectWithBytesMask(tensor<T>(a[0]), tensor<T>(a[1]), scalar<T>(a[2]), tensor<uint8_t>(a[3]),
                                     bytes_at(a[7], a[8]), info);
    });
    Register("SelectWithBytesMask scalar first" + type, [](Arguments a) {
        const AscendC::SelectWithBytesMaskShapeInfo info{uint32_t(a[4]), uint32_t(a[5]), uint32_t(a[6])};
        AscendC::SelectWithBytesMask(tensor<T>(a[0]), scalar<T>(a[2]), tensor<T>(a[1]), tensor<uint8_t>(a[3]),
                                     bytes_at(a[7], a[8]), info);
    });
    return true;
}

template <typename T>
bool register_sorting() {
    const std::string type = " " + type_name<T>();
    Register("Sort32" + type, [](Arguments a) {
        AscendC::Sort32(tensor<T>(a[0]), tensor<T>(a[1]), tensor<uint32_t>(a[2]), static_cast<int32_t>(a[3]));
    });
    // Arguments: dst, four sources, four lengths, valid bits, repeats, where the counts go.
    const auto merge = [](Arguments a, auto call) {
        const AscendC::MrgSortSrcList<T> list(tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), tensor<T>(a[4]));
        const uint16_t lengths[] = {uint16_t(a[5]), uint16_t(a[6]), uint16_t(a[7]), uint16_t(a[8])};
        uint32_t taken[4] = {};
        call(tensor<T>(a[0]), list, lengths, taken, static_cast<uint16_t>(a[9]), static_cast<int32_t>(a[10]));
        for (uint32_t i = 0; i < 4; ++i) tensor<uint32_t>(a[11]).SetValue(i, taken[i]);
    };
    Register("MrgSort" + type, [merge](Arguments a) {
        merge(a, [](auto... p) { AscendC::MrgSort<T, false>(p...); });
    });
    Register("MrgSort suspended" + type, [merge](Arguments a) {
        merge(a, [](auto... p) { AscendC::MrgSort<T, true>(p...); });
    });
    Register("MrgSort and its counts" + type, [merge](Arguments a) {
        merge(a, [](auto dst, auto list, const uint16_t *lengths, uint32_t *taken, uint16_t valid, int32_t repeats) {
            AscendC::MrgSort<T>(dst, list, AscendC::MrgSort4Info(lengths, true, valid, static_cast<uint16_t>(repeats)));
            uint16_t counts[4];
            AscendC::GetMrgSortResult(counts[0], counts[1], counts[2], counts[3]);
            std::copy(counts, counts + 4, taken);
        });
    });
    // Arguments: values, indices, scores, their indices, records, temporary, repeats.
    Register("Sort" + type, [](Arguments a) {
        auto concat = tensor<T>(a[2]), records = tensor<T>(a[4]), tmp = tensor<T>(a[5]);
        const auto repeats = static_cast<int32_t>(a[6]);
        AscendC::Concat(concat, tensor<T>(a[2]), tmp, repeats);
        AscendC::Sort<T, true>(records, concat, tensor<uint32_t>(a[3]), tmp, repeats);
        AscendC::Extract(tensor<T>(a[0]), tensor<uint32_t>(a[1]), records, repeats);
    });
    return true;
}

// Arguments: elements, value, first element; fills the global tensor and returns it in UB at 0, 4096 bytes.
template <typename T>
bool register_fill() {
    Register("InitGlobalMemory " + type_name<T>(), [](Arguments a) {
        if (asim::gm_region_count() == 0) {
            asim::add_gm_region("y", asim::GmRole::Output, 4096, 2ull << 20);  // apart from what other machines map
        }
        const asim::GmRegion &region = asim::gm_region(0);
        std::memset(region.base, 0x5a, 4096);
        AscendC::GlobalTensor<T> gm;
        gm.SetGlobalBuffer(reinterpret_cast<T *>(region.base), 4096 / sizeof(T));
        asim::block().ub_used_bytes = asim::block().ub_bytes - 1024;
        AscendC::InitGlobalMemory(gm[a[2]], static_cast<uint64_t>(a[0]), static_cast<T>(a[1]));
        std::memcpy(asim::block().ub, region.base, 4096);
    });
    return true;
}

struct PlannedRows {
    uint32_t srcM, srcK;
};

// Arguments: dst, sums, maxima, src, rows, stride, columns, scratch, bytes.
template <typename T>
bool register_softmax() {
    Register("SoftMax " + type_name<T>(), [](Arguments a) {
        const AscendC::SoftMaxShapeInfo shape{uint32_t(a[4]), uint32_t(a[5]), uint32_t(a[4]), uint32_t(a[6])};
        AscendC::SoftMax<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), bytes_at(a[7], a[8]),
                            PlannedRows{}, shape);
    });
    Register("SoftMax planned " + type_name<T>(), [](Arguments a) {
        asim::block().ub_used_bytes = static_cast<uint32_t>(a[7]);
        AscendC::SoftMax<T>(tensor<T>(a[0]), tensor<T>(a[3]), PlannedRows{uint32_t(a[4]), uint32_t(a[5])});
    });
    return true;
}

// Arguments: dst, sums, maxima, src, factors, sums and maxima before, update, rows, stride, columns, scratch and its bytes.
const Register g_softmax_piece("SoftmaxFlashV2", [](Arguments a) {
    const AscendC::SoftMaxShapeInfo shape{uint32_t(a[8]), uint32_t(a[9]), uint32_t(a[8]), uint32_t(a[10])};
    const auto dst = tensor<float>(a[0]), sums = tensor<float>(a[1]), maxima = tensor<float>(a[2]), src = tensor<float>(a[3]);
    const auto factors = tensor<float>(a[4]), sums_before = tensor<float>(a[5]), maxima_before = tensor<float>(a[6]);
    const auto scratch = bytes_at(a[11], a[12]);
    const SoftMaxTiling unplanned{};
    if (a[7] != 0) {
        AscendC::SoftmaxFlashV2<float, true>(dst, sums, maxima, src, factors, sums_before, maxima_before, scratch, unplanned, shape);
    } else {
        AscendC::SoftmaxFlashV2<float, false>(dst, sums, maxima, src, factors, sums_before, maxima_before, scratch, unplanned, shape);
    }
});

// Arguments: dst, grad, src, only sums, rows, stride, columns, scratch and its bytes; the shape is noted for the source.
template <typename T>
void softmax_gradient(Arguments a) {
    const uint32_t padded[] = {uint32_t(a[4]), uint32_t(a[5])}, original[] = {uint32_t(a[4]), uint32_t(a[6])};
    const auto src = tensor<T>(a[2]);
    src.SetShapeInfo(AscendC::ShapeInfo(2, padded, 2, original, AscendC::DataFormat::ND));
    AscendC::SoftmaxGrad<T>(tensor<T>(a[0]), tensor<T>(a[1]), src, bytes_at(a[7], a[8]), SoftMaxTiling{}, a[3] != 0);
}
const Register g_gradient_of_floats("SoftmaxGrad float32", softmax_gradient<float>);
const Register g_gradient_of_halves("SoftmaxGrad float16", softmax_gradient<half>);

const bool g_registered = register_softmax<half>() && register_softmax<float>() && register_rows<half>() && register_rows<float>() && register_rows<int32_t>() &&
                          register_sums<half>() && register_sums<float>() && register_sorting<half>() &&
                          register_sorting<float>() && register_fill<uint8_t>() && register_fill<half>() &&
                          register_fill<int32_t>() && register_fill<int64_t>();

// Arguments: dst, left, right, elements.
const Register g_operators("operators float32", [](Arguments a) {
    auto dst = tensor<float>(a[0]);
    dst.SetSize(static_cast<uint32_t>(a[3]));
    const auto left = tensor<float>(a[1]), right = tensor<float>(a[2]);
    dst = left + right;
    dst = dst * left;
    dst = dst - right;
    dst(0) = dst(1);
    dst(2) = 3.5f;
});

const Register g_comparison("comparison float32", [](Arguments a) {
    auto left = tensor<float>(a[1]);
    left.SetSize(static_cast<uint32_t>(a[3]));
    auto bits = tensor<uint8_t>(a[0]);
    bits = left >= tensor<float>(a[2]);
});

// Arguments: dst, src, lanes: sum of a repeat, the accumulator's bits, and the bits of the largest and its index.
const Register g_raw("raw reductions float32", [](Arguments a) {
    const auto src = tensor<float>(a[1]);
    set_vector_mask(0, (1ull << a[2]) - 1);
    vcadd((float *)tensor<float>(a[0]).GetPhyAddr(), (float *)src.GetPhyAddr(), 1, 1, 1, 8, false);
    AscendC::ReduceSum(tensor<float>(a[0] + 64), src, src, static_cast<int32_t>(a[2]));
    tensor<uint32_t>(a[0]).SetValue(1, static_cast<uint32_t>(AscendC::GetAccVal()));
    AscendC::WholeReduceMax(tensor<float>(a[0] + 32), src, static_cast<int32_t>(a[2]), 1, 1, 1, 8);
    const int64_t extreme = get_max_min_cnt();
    tensor<uint32_t>(a[0]).SetValue(2, static_cast<uint32_t>(extreme));
    tensor<uint32_t>(a[0]).SetValue(3, static_cast<uint32_t>(extreme >> 32));
});

// Arguments: dst, src: a matrix of 16 x 16 through address registers, then the same by vtranspose.
const Register g_transposition("raw transposition", [](Arguments a) {
    uint64_t rows[2][16];
    for (uint64_t i = 0; i < 16; ++i) {
        rows[0][i] = reinterpret_cast<uint64_t>(asim::block().ub + a[0] + 32 * i);
        rows[1][i] = reinterpret_cast<uint64_t>(asim::block().ub + a[1] + 32 * i);
    }
    set_va_reg_sb(VA0, rows[0]);
    set_va_reg_sb(VA1, rows[0] + 8);
    set_va_reg_sb(VA2, rows[1]);
    set_va_reg_sb(VA3, rows[1] + 8);
    scatter_vnchwconv_b16(VA0, VA2, 1, 0, 0);
    vtranspose((uint16_t *)tensor<uint16_t>(a[0] + 512).GetPhyAddr(), (uint16_t *)tensor<uint16_t>(a[1]).GetPhyAddr());
});

// Arguments: dst, src: what an address is, and how far an element and a byte lie behind it.
const Register g_addresses("addresses", [](Arguments a) {
    const auto src = tensor<float>(a[1]);
    const auto dst = tensor<uint32_t>(a[0]);
    static_assert(std::is_same_v<decltype(src.GetPhyAddr()), uint64_t>);
    dst.SetValue(0, static_cast<uint32_t>(src.GetPhyAddr(3) - src.GetPhyAddr()));
    dst.SetValue(1, *(const uint32_t *)(src.GetPhyAddr() + 4));
    PRELOAD(2);
});

// Argument: the mode of overflows.
const Register g_overflow("SetOverflow", [](Arguments a) { AscendC::AscendCUtils::SetOverflow(static_cast<uint64_t>(a[0])); });

}  // namespace
