// Codes of reported errors under their longer path.
#pragma once
#include "log/error_code.h"
