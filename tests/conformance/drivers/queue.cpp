#include "asim/machine/queue_state.h"
#include "machine.h"

namespace {

asim::Queue g_queue({asim::Pipe::MTE2, asim::Pipe::V, asim::Space::Ub, 2});
std::vector<uint8_t *> g_taken;

const Register g_init("init", [](Arguments a) {
    g_taken.clear();
    g_queue.init(static_cast<uint32_t>(a[0]), static_cast<uint64_t>(a[1]));
});
const Register g_allocate("allocate", [](Arguments) { g_taken.push_back(g_queue.allocate()); });
const Register g_release("release", [](Arguments a) { g_queue.release(g_taken.at(a[0])); });

}  // namespace
