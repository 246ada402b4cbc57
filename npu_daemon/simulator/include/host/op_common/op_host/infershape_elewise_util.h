// The same header under another of its paths.
#pragma once
#include "op_host/infershape_elewise_util.h"
