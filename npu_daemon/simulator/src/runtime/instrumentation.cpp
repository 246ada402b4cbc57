// Called by the compiler's instrumentation of candidate code: counts what the kernel itself executes.
#include "asim/machine/block.h"

extern "C" void __sanitizer_cov_trace_pc() { ++asim::g_block->scalar_blocks; }
