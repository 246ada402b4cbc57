// Which blocks of host code that marks them have been reached since it was loaded.
#pragma once
#include <cstdint>
#include <string>

// Host code that marks its blocks calls this at the start of each.
extern "C" void asim_host_reached(uint32_t number);

namespace asim::host {

// The numbers so far, as hexadecimal digits of eight bits each, lowest number first; empty where nothing is marked.
std::string reached_digits();

}  // namespace asim::host
