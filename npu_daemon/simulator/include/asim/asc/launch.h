// Launches by kernel<<<block_dim, l2_control, stream>>>(arguments), as a program of its own main function makes them.
// The source rewriter turns each into a call of launch_kernel.
#pragma once
#include <cstdint>
#include <functional>

namespace asim {

// Runs `entry` on every block and traces it; returns when all blocks have ended.
void run_launch(const char *kernel, uint32_t block_dim, const std::function<void()> &entry);

// `call` calls the kernel with copies of the arguments, which are evaluated once, on the host.
template <typename Call, typename... Arguments>
void launch_kernel(const char *kernel, uint64_t block_dim, const Call &call, const Arguments &...arguments) {
    run_launch(kernel, static_cast<uint32_t>(block_dim), [&] { call(arguments...); });
}

}  // namespace asim
