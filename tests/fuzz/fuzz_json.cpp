// A lab's state from a file: any JSON is either refused as a whole or leaves every field in its range, and
// then what is written reads back to the same.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/fields.h"

namespace {

struct Params {
    double scale = 1;
    int history = 16;
    bool stochastic = false;
    std::string format = "e4m3", note;
    bool operator==(const Params&) const = default;
};

std::vector<fp8lab::Field> fields(Params& p) {
    using namespace fp8lab;
    return {number({.name = "scale", .label = "Scale"}, &p.scale, 1e-4, 1e4, true),
            integer({.name = "history", .label = "History"}, &p.history, 1, 4096),
            toggle({.name = "stochastic", .label = "Stochastic"}, &p.stochastic),
            choice({.name = "format", .label = "Format"}, &p.format, {{"e4m3", "E4M3"}, {"e5m2", "E5M2"}}),
            text({.name = "note", .label = "Note"}, &p.note)};
}

void check(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fp8lab;
    const auto json = nlohmann::json::parse(data, data + size, nullptr, false);
    if (json.is_discarded()) return 0;
    Params params;
    const auto table = fields(params);
    try {
        fields_from_json(table, json);
    } catch (const Error& error) {
        check(error.kind() == ErrorKind::input || error.kind() == ErrorKind::usage);
        check(params == Params{});
        return 0;
    }
    check(params.scale >= 1e-4 && params.scale <= 1e4);
    check(params.history >= 1 && params.history <= 4096);
    check(params.format == "e4m3" || params.format == "e5m2");
    Params again;
    fields_from_json(fields(again), nlohmann::json::parse(fields_to_json(table).dump()));
    check(again == params);
    return 0;
}
