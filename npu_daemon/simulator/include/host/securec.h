// Bounded memory and string functions: 0 on success, an error number and no effect when a bound would be broken.
#pragma once

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

using errno_t = int;
constexpr errno_t EOK = 0;

inline errno_t memcpy_s(void *target, size_t capacity, const void *source, size_t count) {
    if (target == nullptr || source == nullptr || count > capacity) return ERANGE;
    std::memcpy(target, source, count);
    return EOK;
}

inline errno_t memset_s(void *target, size_t capacity, int value, size_t count) {
    if (target == nullptr || count > capacity) return ERANGE;
    std::memset(target, value, count);
    return EOK;
}

inline errno_t strcpy_s(char *target, size_t capacity, const char *source) {
    return source == nullptr ? EINVAL : memcpy_s(target, capacity, source, std::strlen(source) + 1);
}

inline errno_t strcat_s(char *target, size_t capacity, const char *source) {
    const size_t used = strnlen(target, capacity);
    return strcpy_s(target + used, capacity - used, source);
}

// Number of characters written, or -1 when `limit` or `capacity` cut the text.
inline int vsnprintf_s(char *target, size_t capacity, size_t limit, const char *format, va_list arguments) {
    const size_t room = limit < capacity ? limit + 1 : capacity;
    const int length = std::vsnprintf(target, room, format, arguments);
    return length < 0 || static_cast<size_t>(length) >= room ? -1 : length;
}

__attribute__((format(printf, 4, 5))) inline int snprintf_s(char *target, size_t capacity, size_t limit,
                                                            const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf_s(target, capacity, limit, format, arguments);
    va_end(arguments);
    return length;
}
