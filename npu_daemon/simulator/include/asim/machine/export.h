// What kernels may call: functions of the run program that are marked so, and no others.
//
// Each of them is safe whatever it is given: pointers, sizes, enumerators and handles are a candidate's. What they take by address
// they check against the memory of the running kernel; structures come by value, so that nothing changes while they are read.
#pragma once

#define ASIM_API __attribute__((visibility("default"), nomerge))     // each call keeps its place (kernel_ir/origins.py)
#define ASIM_API_TYPE __attribute__((visibility("default")))        // in names of such functions
