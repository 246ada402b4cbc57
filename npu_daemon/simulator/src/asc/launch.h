// The builds of a program with launches, and where the launches leave their traces.
#pragma once
#include "../run/job.h"

namespace asim {

using ProgramMain = int (*)(int, char **);

// Loads the builds that the job names and returns main of the first. Launch number i (from 0) writes its trace to
// TRACE.i, and a line `i BLOCK_DIM KERNEL` to TRACE.launches. Throws std::runtime_error.
ProgramMain load_program(const Job &job);

}  // namespace asim
