// How the run program calls a kernel entry, whatever its number of arguments. Kernels cannot say the names here that begin with
// asim_ (kernel_build.py), so that these functions stay what they are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "asim/api/gm_array.h"
#include "asim/machine/refusal.h"
#include "asim/machine/task_type.h"

// The notes of the library, from the linker; none if the kernel leaves no note.
extern "C" {
extern const asim::TaskTypeNote __start_asim_task_types[] __attribute__((weak, visibility("hidden")));
extern const asim::TaskTypeNote __stop_asim_task_types[] __attribute__((weak, visibility("hidden")));
}

namespace asim {

// Inlined, so that the entry is called directly and not by its address.
template <typename... Arguments, size_t... Index>
inline __attribute__((always_inline)) void asim_call_entry(void (*entry)(Arguments...), uint8_t *const *arguments, std::index_sequence<Index...>) {
    entry(reinterpret_cast<Arguments>(arguments[Index])...);
}

template <typename... Arguments>
inline __attribute__((always_inline)) void asim_launch(void (*entry)(Arguments...), uint8_t *const *arguments, uint32_t count) {
    if (count != sizeof...(Arguments)) refuse(Refusal::ArgumentCount, sizeof...(Arguments), count);
    asim_call_entry(entry, arguments, std::index_sequence_for<Arguments...>{});
}

}  // namespace asim
