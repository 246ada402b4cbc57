// The name of the file comes from a macro.
#pragma once
#include "honest.h"

#define SECRET "/etc/passwd"
#include SECRET

class Candidate : public HonestKernel {
public:
};
