// A pragma behind a digraph.
#pragma once
%:pragma GCC optimize("O3")
#include "honest.h"

using Candidate = HonestKernel;
