// How the run program calls a kernel that is a template: by the instance of its tiling key.
#pragma once
#include <utility>

#include "asim/api/launch.h"
#include "asim/api/tiling_template.h"

namespace asim {

// The keys to build, all of them: `Chooser` chooses among the combinations for `tensors`.
template <typename Chooser, const tiling_template::Tensors &tensors>
class asim_all_keys {
    static constexpr size_t kMost = 1024;
    struct Keys {
        uint64_t key[kMost] = {};
        size_t count = 0;
        bool more = false;
    };
    static constexpr Keys found() {
        Keys keys;
        for (uint64_t number = 0;; ++number) {
            const tiling_template::Choice choice = Chooser::asim_chosen({tensors, true, number});
            if (choice.found == 0) return keys;
            if (!choice.built()) continue;
            keys.more = keys.count == kMost;
            if (keys.more) return keys;
            keys.key[keys.count++] = choice.key;
        }
    }
    static constexpr Keys keys = found();
    static_assert(!keys.more, "ASCENDC_TPL_SEL has more than 1024 combinations for these element types: at most as many are built together");
    template <size_t... Index>
    static auto listed(std::index_sequence<Index...>) -> std::integer_sequence<uint64_t, keys.key[Index]...>;

 public:
    using asim_list = decltype(listed(std::make_index_sequence<keys.count>{}));
};

template <template <uint64_t> class Instance, uint64_t... Keys>
inline __attribute__((always_inline)) void asim_launch_template(std::integer_sequence<uint64_t, Keys...>, uint8_t *const *arguments, uint32_t count) {
    if constexpr (sizeof...(Keys) == 1) {
        (((void)tiling_key_is(Keys), Instance<Keys>::asim_run(arguments, count)), ...);
    } else {
        [[maybe_unused]] const bool ran[] = {false, tiling_key_is(Keys) && (Instance<Keys>::asim_run(arguments, count), true)...};
    }
}

// The task type of a key's instance, `otherwise` if its combination names none; kNoInstance if there is no instance.
template <template <uint64_t> class Instance, uint64_t... Keys>
inline uint32_t asim_template_task_type(std::integer_sequence<uint64_t, Keys...>, uint64_t key, uint32_t otherwise) {
    uint32_t type = kNoInstance;
    [[maybe_unused]] const bool is[] = {
        false, key == Keys && (type = tiling_template::task_type_of(Instance<Keys>::asim_choice.kernel_type, otherwise), true)...};
    return type;
}

}  // namespace asim
