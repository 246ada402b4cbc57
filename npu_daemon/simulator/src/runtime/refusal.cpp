#include "asim/machine/refusal.h"

#include "asim/machine/fault.h"

namespace asim {

namespace {

struct Words {
    FaultKind kind;
    const char *call;
    const char *format;     // of three numbers
};

// In the order of Refusal.
constexpr Words kWords[] = {
    {FaultKind::RuntimeFault, "launch", "the kernel entry takes %u arguments, but inputs, outputs, workspace and tiling are %u"},
    {FaultKind::RuntimeFault, "DataCopy", "slices have 1 to 8 dimensions"},
    {FaultKind::RuntimeFault, "DataCopy", "a slice needs the extent of its dimension in shapeValue and an end that is not before its start"},
    {FaultKind::RuntimeFault, "AscendDequant",
     "rows of %u elements with %u to scale: expected a multiple of 8, and between 1 and all of them"},
    {FaultKind::RuntimeFault, "AscendDequant", "calCount is %u, but there are %u scales"},
    {FaultKind::RuntimeFault, "AscendDequant",
     "%u elements of %u, with %u scales: expected a multiple of 8 scales, and whole rows of that many elements"},
    {FaultKind::Unsupported, "Matmul", "copies of the kernel's own (MatmulCallBackFunc) are not simulated"},
    {FaultKind::Unsupported, "Transpose", "of the transpositions with a plan, TRANSPOSE_ND2ND_ONLY is simulated"},
    {FaultKind::Unsupported, "IBSet, IBWait, WaitPreBlock or NotifyNextBlock",
     "signals from block to block in global memory are not simulated: SyncAll and CrossCoreSetFlag are"},
    {FaultKind::RuntimeFault, "Gather, Brcb or Copy",
     "has no instruction for elements of %u bytes: the library compiles the call to nothing; use elements of 16 or 32 bits"},
    {FaultKind::RuntimeFault, "Trap", "the kernel stopped itself"},
    {FaultKind::RuntimeFault, "GetBufHandle", "there is no buffer %u: EXTERN_IMPL_BUFPOOL declares %u"},
    {FaultKind::RuntimeFault, "SetCtrlSpr", "bits %u to %u: of CTRL, bit 48 can be set on Atlas A2"},
    {FaultKind::Unsupported, "SetSaturationFlag or SetCtrlSpr",
     "results of half and bfloat16_t that saturate, and casts to integers that wrap around, are not simulated"},
};

}  // namespace

void refuse(Refusal what, uint32_t first, uint32_t second, uint32_t third) {
    const Words &words = kWords[what <= Refusal::Saturation ? static_cast<uint32_t>(what) : static_cast<uint32_t>(Refusal::Trap)];
    fault(words.kind, words.call, words.format, first, second, third);
}

}  // namespace asim
