// Where launches of a program leave their traces.
#pragma once
#include "../run/job.h"

namespace asim {

// Launch number i (from 0) writes its trace to TRACE.i, and a line `i BLOCK_DIM KERNEL` to TRACE.launches.
void prepare_launches(const Job &job);

}  // namespace asim
