// What the host library throws at host code that asks for something impossible; the runner reports it.
#pragma once

#include <stdexcept>
#include <string>

namespace asim::host {

// Host code broke a rule of the interface.
class HostFault : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

// Host code uses a part of the interface that the simulator does not have.
class UnsupportedFault : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

}  // namespace asim::host
