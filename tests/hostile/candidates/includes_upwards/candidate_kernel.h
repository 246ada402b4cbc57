// Includes a file outside its folder.
#pragma once
#include "honest.h"

#include "../../../../../../../../etc/passwd"

class Candidate : public HonestKernel {
public:
};
