// A build flag opens the classes of the library.
#pragma once
#include "honest.h"

using Candidate = HonestKernel;
