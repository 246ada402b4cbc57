// Logging: errors and warnings of host code go to standard error, where a failed call shows them.
#pragma once

constexpr int DLOG_DEBUG = 0;
constexpr int DLOG_INFO = 1;
constexpr int DLOG_WARN = 2;
constexpr int DLOG_ERROR = 3;
constexpr int DLOG_EVENT = 16;
constexpr int DLOG_TYPE_DEBUG = 0;
constexpr int OP = 63;
constexpr int MSG_LENGTH = 1024;

// 1 when a message of that level is written.
int AlogCheckDebugLevel(unsigned int module, int level);
int CheckLogLevel(int module, int level);
void AlogRecord(unsigned int module, unsigned int type, int level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
