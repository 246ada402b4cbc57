#include "asim/machine/list_descriptor.h"

#include <cstring>

#include "asim/machine/fault.h"
#include "asim/machine/kernel_memory.h"
#include "asim/machine/list_block.h"
#include "asim/machine/scalar_access.h"

namespace asim {

namespace {

constexpr uint64_t kNoShapes = 0xffffffff;
constexpr const char *kCall = "ListTensorDesc";

uint64_t read_word(const uint64_t *word) {
    uint64_t value;
    std::memcpy(&value, scalar_gm(kCall, const_cast<uint64_t *>(word), sizeof value, false), sizeof value);
    return value;
}

uint32_t low(uint64_t word) { return static_cast<uint32_t>(word); }
uint32_t high(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

}  // namespace

std::vector<uint64_t> build_list_descriptor(const std::vector<ListEntry> &tensors) {
    std::vector<uint64_t> words(1);
    for (std::size_t index = 0; index < tensors.size(); ++index) {
        const std::vector<uint64_t> scalar{1};
        const auto &shape = tensors[index].shape.empty() ? scalar : tensors[index].shape;
        words.push_back(shape.size() | static_cast<uint64_t>(index) << 32);
        words.insert(words.end(), shape.begin(), shape.end());
    }
    words[0] = words.size() * sizeof(uint64_t);
    for (const ListEntry &tensor : tensors) {
        words.push_back(reinterpret_cast<uintptr_t>(tensor.data));
    }
    return words;
}

namespace {

ListDescriptor read_descriptor(const void *block) {
    ListDescriptor list;
    list.block = static_cast<const uint64_t *>(block);
    const uint64_t table_word = read_word(list.block) / sizeof(uint64_t);
    const uint64_t first = read_word(list.block + 1);
    list.table = list.block + table_word;
    list.rank = low(first);
    if (list.rank == 0) {
        list.count = read_word(list.block + 2) == kNoShapes ? high(first) : 0;
        return list;
    }
    const uint64_t entry_words = 1 + uint64_t{list.rank};
    const uint64_t last = read_word(list.table - entry_words);
    if ((table_word - 1) % entry_words == 0 && high(last) + 1 == (table_word - 1) / entry_words) {
        list.count = high(last) + 1;
    }
    return list;
}

}  // namespace

void read_list_descriptor(const void *block, ListDescriptor *list) {
    const ListDescriptor read = read_descriptor(block);
    kernel_access(list, sizeof *list, true);
    *list = read;
}

void *list_data(ListDescriptor list, uint32_t index) {
    return reinterpret_cast<void *>(static_cast<uintptr_t>(read_word(list.table + index)));
}

uint32_t list_size(ListDescriptor list) {
    if (list.count == 0) {
        fault(FaultKind::RuntimeFault, kCall,
              "the tensors of this list have different ranks, which ListTensorDesc cannot describe: "
              "pass the count and the shapes in the tiling data");
    }
    return list.count;
}

void read_list_shape(ListDescriptor list, uint32_t index, uint64_t *shape) {
    if (index >= list_size(list)) {
        fault(FaultKind::RuntimeFault, kCall, "GetDesc of tensor %u of a list of %u", index, list.count);
    }
    const uint64_t *entry = list.block + 1 + uint64_t{index} * (1 + uint64_t{list.rank});
    for (uint32_t axis = 0; axis < list.rank; ++axis) {
        const uint64_t extent = read_word(entry + 1 + axis);
        kernel_access(shape + axis, sizeof extent, true);
        shape[axis] = extent;
    }
}

}  // namespace asim
