// What tiling programs use of the language's library.
#pragma once
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>
#include "honest.h"

struct Plan : HonestPlan {
    struct Choice {
        virtual ~Choice() = default;
        virtual uint32_t Length() const
        {
            return 512;
        }
    };
    struct Large : Choice {
        uint32_t Length() const override
        {
            return 1024;
        }
    };

    static uint32_t TileLength()
    {
        static const std::map<std::string, std::vector<uint32_t>> kTable = {{"small", {64, 128}}, {"large", {512, 1024}}};
        static std::mutex mutex;
        std::lock_guard<std::mutex> guard(mutex);
        std::unordered_map<uint64_t, std::tuple<int64_t, double>> costs;
        for (uint32_t length : kTable.at("large")) {
            costs.emplace(length, std::make_tuple(static_cast<int64_t>(length), std::ceil(std::log2(length) * std::sqrt(2.0))));
        }
        std::ostringstream text;
        text << costs.size() << " choices, " << std::boolalpha << true << '\n';
        std::cerr << text.str();
        char line[64];
        std::snprintf(line, sizeof(line), "%s %" PRIu64, "it's", static_cast<uint64_t>(costs.size()));
        std::fprintf(stderr, "%s\n", line);
        std::unique_ptr<Choice> choice = std::make_unique<Large>();
        const bool large = dynamic_cast<Large*>(choice.get()) != nullptr && std::strlen(line) > 0;
        std::function<uint32_t(uint32_t)> chosen = [large](uint32_t length) { return large ? length / 2 : length; };
        std::optional<uint32_t> found;
        try {
            found = chosen(choice->Length());
            (void)kTable.at("missing");
        } catch (const std::out_of_range& error) {
            std::cerr << error.what() << std::endl;
        }
        std::array<uint32_t, 3> numbers = {3, 1, 2};
        std::sort(numbers.begin(), numbers.end(), std::greater<>());
        std::set<uint32_t> ordered(numbers.begin(), numbers.end());
        const uint32_t total = std::accumulate(ordered.begin(), ordered.end(), 0U);
        return total == 6 ? std::min(found.value_or(0), std::numeric_limits<uint32_t>::max()) : 0;
    }
};
