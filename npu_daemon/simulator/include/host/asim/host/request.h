// The request file of one tiling run, and the call that it describes.
//
// One fact per line, words separated by blanks; text is written as hexadecimal digits ("-" when empty):
//   op <operator type, or - for the only one>
//   soc <chip name>            cores <cube> <vector> <what GetCoreNum answers>
//   memory <index> <bytes>     bandwidth <index> <bytes per cycle>      index as in fe::LocalMemType
//   deterministic <0|1>
//   input | output             starts the next parameter
//   tensor <DT_x> <layout> <file, hexadecimal> <rank> <extents...>      one tensor of that parameter
//   attribute <type> <value, or count and values>
#pragma once

#include <string>

#include "asim/host/call.h"

namespace asim::host {

struct Request {
    std::string op_type;
    Call call;
    std::vector<std::vector<uint64_t>> input_values;  // of inputs whose values tiling may read
};

// Read the request at `path` into `request`; throws HostFault on a malformed file.
void read_request(const std::string &path, Request &request);

}  // namespace asim::host
