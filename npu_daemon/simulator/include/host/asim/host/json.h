// Just enough JSON to answer with: every function returns the text of one value.
#pragma once

#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>

namespace asim::host::json {

inline std::string text(const std::string &value) {
    std::string quoted = "\"";
    for (const char raw : value) {
        const auto code = static_cast<unsigned char>(raw);
        if (code == '"' || code == '\\') quoted += '\\';
        if (code >= 0x20 && code < 0x7f) {
            quoted += raw;
            continue;
        }
        char escaped[8];
        std::snprintf(escaped, sizeof(escaped), "\\u%04x", code);
        quoted += escaped;
    }
    return quoted + "\"";
}

inline std::string boolean(bool value) { return value ? "true" : "false"; }

inline std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.17g", value);
    return digits;
}

template <class Items, class Encode>
std::string array(const Items &items, Encode encode) {
    std::string body;
    for (const auto &item : items) {
        if (!body.empty()) body += ',';
        body += encode(item);
    }
    return "[" + body + "]";
}

inline std::string object(std::initializer_list<std::pair<const char *, std::string>> members) {
    std::string body;
    for (const auto &[key, value] : members) {
        if (!body.empty()) body += ',';
        body += text(key) + ":" + value;
    }
    return "{" + body + "}";
}

}  // namespace asim::host::json
