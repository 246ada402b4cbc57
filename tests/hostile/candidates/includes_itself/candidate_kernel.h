// Includes itself without an end.
#include "honest.h"
#include "candidate.h"

using Candidate = HonestKernel;
