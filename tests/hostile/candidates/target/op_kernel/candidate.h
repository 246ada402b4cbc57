#pragma once
#include "honest.h"

using Candidate = HonestKernel;
