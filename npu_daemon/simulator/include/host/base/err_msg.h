// Error reports of host code: written to standard error with their code.
#pragma once

namespace asim::host {
void report_error(const char *code, const char *format, ...) __attribute__((format(printf, 2, 3)));
}  // namespace asim::host

#define REPORT_INNER_ERR_MSG(code, ...) ::asim::host::report_error(code, __VA_ARGS__)
