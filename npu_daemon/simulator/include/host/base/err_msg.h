// Error reports of host code: written to standard error with their code.
#pragma once

#include <string>
#include <vector>

namespace asim::host {
void report_error(const char *code, const char *format, ...) __attribute__((format(printf, 2, 3)));
void report_fields(const char *code, const std::vector<const char *> &keys, const std::vector<const char *> &values);
}  // namespace asim::host

#define REPORT_INNER_ERR_MSG(code, ...) ::asim::host::report_error(code, __VA_ARGS__)
#define REPORT_PREDEFINED_ERR_MSG(code, keys, values) ::asim::host::report_fields(code, keys, values)
