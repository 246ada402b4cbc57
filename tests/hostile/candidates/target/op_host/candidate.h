#pragma once
#include "honest.h"

using Plan = HonestPlan;
