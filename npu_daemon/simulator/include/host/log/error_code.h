// Codes of reported errors: complaints here are text alone.
#pragma once
#include "log/log.h"
