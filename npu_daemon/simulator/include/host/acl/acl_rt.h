// Part of the acl interface that programs also include by itself.
#pragma once
#include "acl/acl.h"
