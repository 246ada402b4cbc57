// The registered operator as JSON: definition for one chip, and tiling structures.
#pragma once

#include <string>

#include "register/op_def.h"

namespace asim::host {

// The definition of `op_type` ("-": the only one registered); throws HostFault listing what is registered.
const ops::OpDef &find_definition(const std::string &op_type);

// The definition as it is for chip `soc_version`, as a JSON object.
std::string describe(const ops::OpDef &definition, const std::string &soc_version);

}  // namespace asim::host
