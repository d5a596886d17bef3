// What stands behind the "#" of an address.
#include "labs/course/link.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"

using fp8lab::Link;
using fp8lab::link_text;
using fp8lab::parse_link;

TEST_CASE("a link opens a lab with its fields, a scene, a deck, or home") {
    CHECK(parse_link("") == Link{});
    CHECK(parse_link("lab=L5") == Link{.lab = "L5"});
    CHECK(parse_link("lab=L5&history=4&margin=1") == Link{.lab = "L5", .fields = {"history=4", "margin=1"}});
    CHECK(parse_link("history=4&lab=L5") == Link{.lab = "L5", .fields = {"history=4"}});
    CHECK(parse_link("scene=L05-b-ramp-real") == Link{.scene = "L05-b-ramp-real"});
    CHECK(parse_link("present=lecture-fp8&") == Link{.deck = "lecture-fp8"});
    CHECK(parse_link("lab=workbench&file=my+weights%2e%6Epz") ==
          Link{.lab = "workbench", .fields = {"file=my weights.npz"}});
    CHECK(parse_link("lab=L1&text=a=b").fields == std::vector<std::string>{"text=a=b"});
}

TEST_CASE("a bad link is refused in one sentence that says why") {
    const auto why = [](const char* link) {
        try {
            parse_link(link);
        } catch (const fp8lab::Error& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    CHECK(why("nonsense") == "link: 'nonsense' is not NAME=VALUE, as lab=L5 is");
    CHECK(why("=L5") == "link: '=L5' is not NAME=VALUE, as lab=L5 is");
    CHECK(why("lab=") == "link: lab has no value");
    CHECK(why("lab=L1&scene=L05-a-ramp") == "link: has more than one of lab, scene and present");
    CHECK(why("lab=L1&lab=L2") == "link: has more than one of lab, scene and present");
    CHECK(why("history=4") == "link: sets 'history=4', but names no lab");
    for (const char* cut : {"lab=%", "lab=%4", "lab=%zz", "lab=%+1", "lab=% 1"}) {
        CAPTURE(cut);
        CHECK(why(cut).find("has a % without two hexadecimal digits") != std::string::npos);
    }
}

TEST_CASE("what link_text() writes is read as the same link, whatever bytes it has") {
    std::mt19937 random(7);
    for (int i = 0; i < 2000; ++i) {
        const auto word = [&] {
            std::string out(1 + random() % 8, 'x');
            for (char& c : out) c = static_cast<char>(1 + random() % 255);
            return out;
        };
        Link link{.lab = word()};
        for (auto n = random() % 3; n > 0; --n) {
            std::string name = word();
            std::erase(name, '=');
            if (name.empty() || name == "lab" || name == "scene" || name == "present") name = "n";
            link.fields.push_back(name + "=" + word());
        }
        const std::string text = link_text(link);
        REQUIRE(parse_link(text) == link);
        for (const char c : text) REQUIRE((c > ' ' && c < 0x7F && c != '"' && c != '#' && c != '<'));
    }
    CHECK(link_text({.lab = "L5", .fields = {"history=4", "format=e4m3"}}) == "lab=L5&history=4&format=e4m3");
    CHECK(link_text({}).empty());
}
