// Leaves its folder by the names that the host gives to running programs.
#pragma once
#include "honest.h"
#include "/proc/self/cwd/op_kernel/honest.h"
#include "/proc/self/environ"

using Candidate = HonestKernel;
