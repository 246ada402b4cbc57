// Logging of the operator libraries under its other name.
#pragma once
#include "log/log.h"
