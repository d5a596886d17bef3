// Lists of names in messages.
#include "core/base/names.h"

#include <doctest/doctest.h>

#include <vector>

using namespace fp8lab;

TEST_CASE("a list of names shows ten, and how many more there are") {
    const auto listed = [](int count) {
        std::vector<int> items;
        for (int i = 1; i <= count; ++i) items.push_back(i);
        return some_names(
            items, [](int item) { return std::to_string(item); }, " ");
    };
    CHECK(listed(0) == "");
    CHECK(listed(1) == "1");
    CHECK(listed(10) == "1 2 3 4 5 6 7 8 9 10");
    CHECK(listed(11) == "1 2 3 4 5 6 7 8 9 10 and 1 more");
    CHECK(listed(100'000) == "1 2 3 4 5 6 7 8 9 10 and 99,990 more");
    CHECK(some_names(std::vector<std::string>{"a", "b"}, [](const std::string& name) { return name; }) ==
          "a, b");
    CHECK(with_commas(999) == "999");
    CHECK(with_commas(1234567) == "1,234,567");
}
