// Which cores a kernel wants: KERNEL_TASK_TYPE and KERNEL_TASK_TYPE_DEFAULT leave notes in the built library.
#pragma once
#include <cstdint>

enum KernelMetaType : uint32_t {
    KERNEL_TYPE_AIV_ONLY,
    KERNEL_TYPE_AIC_ONLY,
    KERNEL_TYPE_MIX_AIV_1_0,
    KERNEL_TYPE_MIX_AIC_1_0,
    KERNEL_TYPE_MIX_AIC_1_1,
    KERNEL_TYPE_MIX_AIC_1_2,
    KERNEL_TYPE_AICORE,
    KERNEL_TYPE_VECTORCORE,
    KERNEL_TYPE_MIX_AICORE,
    KERNEL_TYPE_MIX_VECTOR_CORE,
    KERNEL_TYPE_MAX
};

namespace asim {

// The answer of a library that has no kernel for a tiling key.
constexpr uint32_t kNoInstance = ~uint32_t{0};

struct TaskTypeNote {
    uint64_t key;
    bool for_all_keys;
    KernelMetaType type;
};

// The type for a tiling key among the notes [first, last): its own, else that for all keys, else `otherwise`.
inline uint32_t asim_noted_task_type(const TaskTypeNote *first, const TaskTypeNote *last, uint64_t key, uint32_t otherwise) {
    uint32_t type = otherwise;
    for (const TaskTypeNote *note = first; note != last; ++note) {
        if (note->for_all_keys) type = note->type;
    }
    for (const TaskTypeNote *note = first; note != last; ++note) {
        if (!note->for_all_keys && note->key == key) type = note->type;
    }
    return type;
}

}  // namespace asim

#define ASIM_NOTE_TASK_TYPE(key, for_all_keys, type)                                                        \
    do {                                                                                                    \
        static const asim::TaskTypeNote asim_note __attribute__((section("asim_task_types"), used)) = {     \
            static_cast<uint64_t>(key), for_all_keys, type};                                                \
    } while (0)
