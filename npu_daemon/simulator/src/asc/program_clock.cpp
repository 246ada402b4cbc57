// The clock by which programs measure themselves: no time passes on it but a millisecond each time that it is read, so that what a
// program does is the same each time. Nothing here takes the time of the device, which only prices tell.
#undef _LIBCPP_HAS_MONOTONIC_CLOCK
#define _LIBCPP_HAS_MONOTONIC_CLOCK 1
#include <__chrono/duration.h>
#include <__chrono/steady_clock.h>

_LIBCPP_BEGIN_NAMESPACE_STD

namespace chrono {

steady_clock::time_point steady_clock::now() noexcept {
    static steady_clock::time_point time;
    return time += milliseconds(1);
}

}  // namespace chrono

_LIBCPP_END_NAMESPACE_STD
