// Shows a file of the host in an error message.
#pragma once
#include "honest.h"

#include "/etc/passwd"

class Candidate : public HonestKernel {
public:
};
