// Which blocks of a kernel that marks them a launch has come to.
#pragma once
#include <cstdint>
#include <string>

#include "asim/machine/block.h"

namespace asim {

constexpr uint32_t kMaxReached = 1u << 18;      // marks of one library; those beyond are not noted

// Notes a block of the library that the running core executes.
void note_reached(uint32_t number);

// The numbers that cores of a kind came to, as hexadecimal digits of eight bits each, lowest number first.
std::string reached_digits(CoreKind kind);

}  // namespace asim
