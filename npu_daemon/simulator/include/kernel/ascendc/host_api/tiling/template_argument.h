#pragma once
#include "asim/api/tiling_template.h"
