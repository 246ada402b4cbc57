#include "machine.h"

namespace {

// Arguments of every call: dst, sums, maxima, src, srcM, srcK, oriSrcM, oriSrcK, temporary buffer, its bytes.
struct Operands {
    explicit Operands(Arguments a)
        : places{a[0], a[1], a[2], a[3]},
          shape{uint32_t(a[4]), uint32_t(a[5]), uint32_t(a[6]), uint32_t(a[7])},
          scratch(asim::block().ub + a[8], a[9], AscendC::TPosition::VECCALC) {}

    template <typename T>
    AscendC::LocalTensor<T> dst() const { return tensor<T>(places[0]); }
    template <typename T>
    AscendC::LocalTensor<T> sums() const { return tensor<T>(places[1]); }
    template <typename T>
    AscendC::LocalTensor<T> maxima() const { return tensor<T>(places[2]); }
    template <typename T>
    AscendC::LocalTensor<T> src() const { return tensor<T>(places[3]); }

    int64_t places[4];
    AscendC::SoftMaxShapeInfo shape;
    AscendC::LocalTensor<uint8_t> scratch;
};

template <typename T>
bool register_calls() {
    const std::string type = " " + type_name<T>();
    Register("SoftMax" + type, [](Arguments a) {
        const Operands x(a);
        AscendC::SoftMax<T>(x.dst<T>(), x.sums<T>(), x.maxima<T>(), x.src<T>(), x.scratch, SoftMaxTiling{}, x.shape);
    });
    Register("SoftMax without sums" + type, [](Arguments a) {
        const Operands x(a);
        AscendC::SoftMax<T>(x.dst<T>(), x.src<T>(), x.scratch, SoftMaxTiling{}, x.shape);
    });
    Register("LogSoftMax" + type, [](Arguments a) {
        const Operands x(a);
        AscendC::LogSoftMax<T>(x.dst<T>(), x.sums<T>(), x.maxima<T>(), x.src<T>(), x.scratch, LogSoftMaxTiling{}, x.shape);
    });
    Register("SimpleSoftMax" + type, [](Arguments a) {
        const Operands x(a);
        AscendC::SimpleSoftMax<T>(x.dst<T>(), x.sums<T>(), x.maxima<T>(), x.src<T>(), x.scratch, SoftMaxTiling{}, x.shape);
    });
    Register("SoftmaxGrad" + type, [](Arguments a) {
        const Operands x(a);
        AscendC::SoftmaxGrad<T>(x.dst<T>(), x.src<T>(), x.src<T>(), x.scratch, SoftMaxTiling{}, false, x.shape);
    });
    Register("SoftmaxGradFront" + type, [](Arguments a) {
        const Operands x(a);
        AscendC::SoftmaxGradFront<T>(x.dst<T>(), x.src<T>(), x.src<T>(), x.scratch, SoftMaxTiling{}, x.shape);
    });
    // The shape is noted for the source.
    Register("SoftmaxGrad noted" + type, [](Arguments a) {
        const Operands x(a);
        const uint32_t padded[] = {x.shape.srcM, x.shape.srcK}, original[] = {x.shape.oriSrcM, x.shape.oriSrcK};
        const auto src = x.src<T>();
        src.SetShapeInfo(AscendC::ShapeInfo(2, padded, 2, original, AscendC::DataFormat::ND));
        AscendC::SoftmaxGrad<T>(x.dst<T>(), src, src, x.scratch, SoftMaxTiling{});
    });
    Register("AdjustSoftMaxRes" + type, [](Arguments a) {
        const Operands x(a);
        AscendC::AdjustSoftMaxRes<T, T>(x.dst<T>(), x.maxima<T>(), 0, static_cast<T>(1.0f), x.shape);
    });
    return true;
}

const Register g_flash("SoftmaxFlashV2 float32", [](Arguments a) {
    const Operands x(a);
    AscendC::SoftmaxFlashV2<float>(x.dst<float>(), x.sums<float>(), x.maxima<float>(), x.src<float>(), x.sums<float>(), x.sums<float>(),
                                   x.maxima<float>(), x.scratch, SoftMaxTiling{}, x.shape);
});
const Register g_simple("SimpleSoftMax of float sums", [](Arguments a) {
    const Operands x(a);
    AscendC::SimpleSoftMax<half>(x.dst<half>(), x.sums<float>(), x.maxima<float>(), x.src<half>(), x.scratch, SoftMaxTiling{}, x.shape);
});

const bool g_registered = register_calls<half>() && register_calls<float>();

}  // namespace
