// Launches by kernel<<<block_dim, l2_control, stream>>>(arguments), as a program of its own main function makes them.
// The source rewriter turns each into a call of launch_kernel. A program is compiled once for each kind of core that its
// kernels run on; main runs in one of these builds, and finds the same launch in the other by its key.
#pragma once
#include <cstdint>
#include <iostream>    // programs get it from the headers of the toolchain
#include <tuple>

#include "asim/machine/export.h"
#include "asim/machine/task_type.h"

// Kernels of the framework compare these in #if; in a program the names are those of host enumerations.
#undef DT_FLOAT
#undef DT_FLOAT16
#undef DT_INT8
#undef DT_INT32
#undef DT_UINT8
#undef DT_INT16
#undef DT_UINT16
#undef DT_UINT32
#undef DT_INT64
#undef DT_UINT64
#undef DT_DOUBLE
#undef DT_BOOL
#undef DT_BF16
#undef DT_INT4
#undef FORMAT_NCHW
#undef FORMAT_NHWC
#undef FORMAT_ND
#undef FORMAT_NC1HWC0
#undef FORMAT_FRACTAL_Z
#undef FORMAT_FRACTAL_NZ

namespace asim {

// Calls the kernel: both point to what the launch evaluated on the host.
using LaunchEntry = void (*)(const void *call, const void *arguments);

// Notes the entry of a launch in the build that is being loaded; returns true.
ASIM_API bool register_launch(const char *key, LaunchEntry entry);

struct Launch {
    const char *kernel;
    const char *key;
    KernelMetaType type;        // KERNEL_TYPE_MAX: as the program's sources let expect
    uint64_t block_dim;
    const void *call;
    const void *arguments;
};

// Runs a launch on every block and traces it; returns when all blocks have ended.
ASIM_API void run_launch(const Launch &launch);

// One launch expression of the source, by its number there, with the types it is instantiated for.
template <int number, typename Call, typename... Arguments>
struct LaunchSite {
    static const char *key() { return __PRETTY_FUNCTION__; }
    static void enter(const void *call, const void *arguments) {
        std::apply(*static_cast<const Call *>(call), *static_cast<const std::tuple<Arguments...> *>(arguments));
    }
    static const bool registered;
};

template <int number, typename Call, typename... Arguments>
const bool LaunchSite<number, Call, Arguments...>::registered = register_launch(key(), &enter);

// `call` calls the kernel with copies of the arguments, which are evaluated once, on the host.
template <int number, typename Call, typename... Arguments>
void launch_kernel(const char *kernel, KernelMetaType type, uint64_t block_dim, const Call &call, Arguments... arguments) {
    using Site = LaunchSite<number, Call, Arguments...>;
    static_cast<void>(Site::registered);
    const std::tuple<Arguments...> values(arguments...);
    run_launch({kernel, Site::key(), type, block_dim, &call, &values});
}

}  // namespace asim
