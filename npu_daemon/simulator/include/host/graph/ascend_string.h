// ge::AscendString: an immutable string whose text is read through GetString().
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace ge {

class AscendString {
 public:
    AscendString() = default;
    AscendString(const char *text) : text_(text == nullptr ? "" : text) {}
    AscendString(const char *text, size_t length) : text_(text, length) {}

    const char *GetString() const { return text_.c_str(); }
    size_t GetLength() const { return text_.size(); }
    size_t Find(const AscendString &part) const { return text_.find(part.text_); }
    size_t Hash() const { return std::hash<std::string>()(text_); }

    bool operator==(const AscendString &other) const { return text_ == other.text_; }
    bool operator==(const char *other) const { return other != nullptr && text_ == other; }
    bool operator!=(const AscendString &other) const { return text_ != other.text_; }
    bool operator<(const AscendString &other) const { return text_ < other.text_; }
    bool operator>(const AscendString &other) const { return text_ > other.text_; }

 private:
    std::string text_;
};

}  // namespace ge

template <>
struct std::hash<ge::AscendString> {
    size_t operator()(const ge::AscendString &text) const { return text.Hash(); }
};
