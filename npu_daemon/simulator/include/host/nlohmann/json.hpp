// The part of nlohmann::json that tiling programs use: values, parse, dump, and conversion by to_json and from_json. Numbers are
// integers or doubles; objects are sorted by key, as those of the library are.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nlohmann {

class json {
 public:
    enum class value_t { null, object, array, string, boolean, number_integer, number_unsigned, number_float, discarded };
    using object_t = std::map<std::string, json>;
    using array_t = std::vector<json>;
    struct exception : std::runtime_error {
        using std::runtime_error::runtime_error;
    };
    using parse_error = exception;
    using type_error = exception;
    using out_of_range = exception;

    json() = default;
    json(std::nullptr_t) {}
    json(bool value) : type_(value_t::boolean), integer_(value) {}
    json(const char *text) : type_(value_t::string), text_(text) {}
    json(std::string text) : type_(value_t::string), text_(std::move(text)) {}
    json(object_t members) : type_(value_t::object), members_(std::move(members)) {}
    json(array_t items) : type_(value_t::array), items_(std::move(items)) {}
    template <class T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int> = 0>
    json(T value) {
        if constexpr (std::is_floating_point_v<T>) {
            type_ = value_t::number_float, real_ = value;
        } else {
            type_ = std::is_signed_v<T> ? value_t::number_integer : value_t::number_unsigned;
            integer_ = static_cast<int64_t>(value);
        }
    }
    template <class T, std::enable_if_t<std::is_enum_v<T>, int> = 0>
    json(T value) : json(static_cast<int64_t>(value)) {}
    template <class T>
    json(const std::vector<T> &items) : type_(value_t::array), items_(items.begin(), items.end()) {}
    template <class T>
    json(const std::map<std::string, T> &members) : type_(value_t::object), members_(members.begin(), members.end()) {}
    // Of a structure with a to_json beside it.
    template <class T, class = decltype(to_json(std::declval<json &>(), std::declval<const T &>()))>
    json(const T &value) {
        to_json(*this, value);
    }
    static json array() { return array_t(); }
    static json object() { return object_t(); }

    value_t type() const { return type_; }
    bool is_null() const { return type_ == value_t::null; }
    bool is_object() const { return type_ == value_t::object; }
    bool is_array() const { return type_ == value_t::array; }
    bool is_string() const { return type_ == value_t::string; }
    bool is_boolean() const { return type_ == value_t::boolean; }
    bool is_number_float() const { return type_ == value_t::number_float; }
    bool is_number_integer() const { return type_ == value_t::number_integer || type_ == value_t::number_unsigned; }
    bool is_number_unsigned() const { return type_ == value_t::number_unsigned; }
    bool is_number() const { return is_number_integer() || is_number_float(); }
    bool is_discarded() const { return type_ == value_t::discarded; }
    size_t size() const { return is_object() ? members_.size() : is_array() ? items_.size() : is_null() ? 0 : 1; }
    bool empty() const { return size() == 0; }

    bool contains(const std::string &key) const { return is_object() && members_.count(key) != 0; }
    size_t count(const std::string &key) const { return contains(key) ? 1 : 0; }
    const json &at(const std::string &key) const {
        if (!contains(key)) throw out_of_range("no key '" + key + "'");
        return members_.at(key);
    }
    json &at(const std::string &key) { return const_cast<json &>(std::as_const(*this).at(key)); }
    const json &at(size_t index) const {
        if (!is_array() || index >= items_.size()) throw out_of_range("no element " + std::to_string(index));
        return items_[index];
    }
    json &at(size_t index) { return const_cast<json &>(std::as_const(*this).at(index)); }
    json &operator[](const std::string &key) {
        if (is_null()) type_ = value_t::object;
        if (!is_object()) throw type_error("a key of what is no object");
        return members_[key];
    }
    const json &operator[](const std::string &key) const { return at(key); }
    json &operator[](const char *key) { return (*this)[std::string(key)]; }
    const json &operator[](const char *key) const { return at(std::string(key)); }
    template <class Index, std::enable_if_t<std::is_integral_v<Index>, int> = 0>
    json &operator[](Index index) {
        return at(static_cast<size_t>(index));
    }
    template <class Index, std::enable_if_t<std::is_integral_v<Index>, int> = 0>
    const json &operator[](Index index) const {
        return at(static_cast<size_t>(index));
    }
    template <class T>
    T value(const std::string &key, const T &otherwise) const {
        return contains(key) ? at(key).template get<T>() : otherwise;
    }
    void push_back(json item) {
        if (is_null()) type_ = value_t::array;
        if (!is_array()) throw type_error("an element for what is no array");
        items_.push_back(std::move(item));
    }
    void emplace_back(json item) { push_back(std::move(item)); }

    // Elements of an array or values of an object, in the order of their keys.
    template <class Owner, class Value>
    class Iterator {
     public:
        Iterator(Owner *owner, size_t place) : owner_(owner), place_(place) {}
        Value &operator*() const { return owner_->nth(place_); }
        Value *operator->() const { return &**this; }
        Value &value() const { return **this; }
        const std::string &key() const { return std::next(owner_->members_.begin(), static_cast<std::ptrdiff_t>(place_))->first; }
        Iterator &operator++() {
            ++place_;
            return *this;
        }
        template <class OtherOwner, class OtherValue>
        bool operator==(const Iterator<OtherOwner, OtherValue> &other) const {
            return place_ == other.place();
        }
        template <class OtherOwner, class OtherValue>
        bool operator!=(const Iterator<OtherOwner, OtherValue> &other) const {
            return place_ != other.place();
        }
        size_t place() const { return place_; }

     private:
        Owner *owner_;
        size_t place_;
    };
    using iterator = Iterator<json, json>;
    using const_iterator = Iterator<const json, const json>;
    iterator begin() { return {this, 0}; }
    iterator end() { return {this, size()}; }
    const_iterator begin() const { return {this, 0}; }
    const_iterator end() const { return {this, size()}; }
    const_iterator cbegin() const { return begin(); }
    const_iterator cend() const { return end(); }
    iterator find(const std::string &key) {
        return contains(key) ? iterator(this, std::distance(members_.begin(), members_.find(key))) : end();
    }
    const_iterator find(const std::string &key) const {
        return contains(key) ? const_iterator(this, std::distance(members_.begin(), members_.find(key))) : end();
    }
    const object_t &items() const { return members_; }

    template <class T>
    T get() const {
        T value{};
        get_to(value);
        return value;
    }
    template <class T>
    T &get_to(T &value) const {
        convert(value);
        return value;
    }
    template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, std::string>, int> = 0>
    operator T() const {
        return get<T>();
    }

    bool operator==(const json &other) const { return dump() == other.dump(); }
    bool operator!=(const json &other) const { return !(*this == other); }

    std::string dump(int = -1) const {
        switch (type_) {
            case value_t::object: {
                std::string text = "{";
                for (const auto &[key, member] : members_) text += (text.size() > 1 ? "," : "") + quoted(key) + ":" + member.dump();
                return text + "}";
            }
            case value_t::array: {
                std::string text = "[";
                for (const json &item : items_) text += (text.size() > 1 ? "," : "") + item.dump();
                return text + "]";
            }
            case value_t::string: return quoted(text_);
            case value_t::boolean: return integer_ != 0 ? "true" : "false";
            case value_t::number_integer: return std::to_string(integer_);
            case value_t::number_unsigned: return std::to_string(static_cast<uint64_t>(integer_));
            case value_t::number_float: {
                char text[32];
                std::snprintf(text, sizeof text, "%.17g", real_);
                return text;
            }
            default: return "null";
        }
    }
    // Throws parse_error, or answers a discarded value where exceptions are not wanted.
    static json parse(const std::string &text, std::nullptr_t = nullptr, bool throws = true) {
        try {
            Reader reader{text.c_str()};
            json value = reader.value(0);
            reader.space();
            if (*reader.at != '\0') throw parse_error("text behind the value");
            return value;
        } catch (const parse_error &) {
            if (throws) throw;
            json value;
            value.type_ = value_t::discarded;
            return value;
        }
    }
    static bool accept(const std::string &text) { return !parse(text, nullptr, false).is_discarded(); }

 private:
    struct Reader {
        const char *at;
        void space() {
            while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') ++at;
        }
        bool took(char wanted) {
            space();
            if (*at != wanted) return false;
            ++at;
            return true;
        }
        void need(char wanted) {
            if (!took(wanted)) throw parse_error(std::string("expected '") + wanted + "' before: " + std::string(at).substr(0, 20));
        }
        bool word(const char *wanted) {
            const size_t length = std::char_traits<char>::length(wanted);
            for (size_t i = 0; i < length; ++i)
                if (at[i] != wanted[i]) return false;
            at += length;
            return true;
        }
        json value(int depth) {
            if (depth > 64) throw parse_error("nested too deep");
            space();
            if (took('{')) {
                object_t members;
                if (took('}')) return members;
                do {
                    space();
                    std::string key = string();
                    need(':');
                    members[key] = value(depth + 1);
                } while (took(','));
                need('}');
                return members;
            }
            if (took('[')) {
                array_t items;
                if (took(']')) return items;
                do items.push_back(value(depth + 1));
                while (took(','));
                need(']');
                return items;
            }
            if (*at == '"') return string();
            if (word("true")) return true;
            if (word("false")) return false;
            if (word("null")) return nullptr;
            return number();
        }
        std::string string() {
            need('"');
            std::string text;
            while (*at != '"') {
                if (*at == '\0') throw parse_error("a string without its end");
                if (*at != '\\') {
                    text += *at++;
                    continue;
                }
                const char escaped = *++at;
                if (escaped == '\0') throw parse_error("a string without its end");
                text += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped == 'r' ? '\r' : escaped;
                ++at;
            }
            ++at;
            return text;
        }
        json number() {
            char *end = nullptr;
            const double real = std::strtod(at, &end);
            if (end == at) throw parse_error("expected a value before: " + std::string(at).substr(0, 20));
            const std::string digits(at, static_cast<const char *>(end));
            at = end;
            if (digits.find_first_not_of("-0123456789") != std::string::npos) return real;
            return static_cast<int64_t>(std::strtoll(digits.c_str(), nullptr, 10));
        }
    };

    static std::string quoted(const std::string &text) {
        std::string out = "\"";
        for (const char each : text) {
            if (each == '"' || each == '\\') out += '\\';
            out += each == '\n' ? ' ' : each;
        }
        return out + "\"";
    }
    json &nth(size_t place) { return is_array() ? items_[place] : std::next(members_.begin(), static_cast<std::ptrdiff_t>(place))->second; }
    const json &nth(size_t place) const { return is_array() ? items_[place] : std::next(members_.begin(), static_cast<std::ptrdiff_t>(place))->second; }

    template <class T>
    void convert(T &value) const {
        if constexpr (std::is_same_v<T, json>) {
            value = *this;
        } else if constexpr (std::is_same_v<T, std::string>) {
            if (!is_string()) throw type_error("a string was expected, got " + dump());
            value = text_;
        } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
            if (!is_number() && !is_boolean()) throw type_error("a number was expected, got " + dump());
            value = is_number_float() ? static_cast<T>(real_) : static_cast<T>(integer_);
        } else {
            from_json(*this, value);
        }
    }
    template <class T>
    void convert(std::vector<T> &values) const {
        if (!is_array()) throw type_error("an array was expected, got " + dump());
        values.clear();
        for (const json &item : items_) values.push_back(item.template get<T>());
    }
    template <class T>
    void convert(std::map<std::string, T> &values) const {
        if (!is_object()) throw type_error("an object was expected, got " + dump());
        values.clear();
        for (const auto &[key, member] : members_) values[key] = member.template get<T>();
    }

    value_t type_ = value_t::null;
    int64_t integer_ = 0;
    double real_ = 0;
    std::string text_;
    array_t items_;
    object_t members_;
};

using ordered_json = json;

}  // namespace nlohmann
