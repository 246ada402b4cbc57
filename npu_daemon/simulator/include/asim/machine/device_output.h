// What kernels print and which clock they read.
#pragma once
#include <cstdint>

namespace asim {

// Prints like printf, but only once `show_device_output` was called: operators under evaluation print nowhere.
int device_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void show_device_output();

// Reads the system counter. Execution knows no cycles: the value only counts the reads of this block, and pricing
// tells for each read which cycle it was made in.
int64_t read_system_counter();

}  // namespace asim
