// GemmGrid from and to JSON (gemm_grid.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "core/backend/gemm_grid.h"
#include "core/backend/grid_plan.h"
#include "core/json/member.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

using Names = std::span<const std::string_view>;
constexpr std::array<std::string_view, 3> kTensors = {"x", "w", "dy"};
constexpr std::array<std::string_view, 2> kOuts = {"bf16", "f32"};
constexpr std::array<std::string_view, 2> kWhens = {"start", "end"};
constexpr std::array<std::string_view, 2> kRefusers = {"heuristic", "matmul"};

// ---- read ----

std::string one_of(const JsonMember& from, const char* name, Names valid) {
    std::string text = from.at(name).filled_text();
    if (std::ranges::find(valid, text) == valid.end())
        from.at(name).fail(fmt::format("is '{}'; valid: {}", quote_from(text), fmt::join(valid, " ")));
    return text;
}
double optional_above_zero(const JsonMember& from, const char* name) {
    return from.has(name) ? from.at(name).above_zero() : 0;
}
double optional_from_zero(const JsonMember& from, const char* name) {
    return from.has(name) ? from.at(name).at_least_zero() : 0;
}

GridTime time_of(const JsonMember& from) {
    GridTime time;
    if (from.has("kernel")) time.kernel = from.at("kernel").filled_text();
    if (from.has("status")) {
        time.status = from.at("status").count();
        time.words = from.at("words").filled_text();
        time.from = one_of(from, "from", kRefusers);
        return time;
    }
    time.median_ms = from.at("median_ms").above_zero();
    time.q1_ms = from.at("q1_ms").above_zero();
    time.q3_ms = from.at("q3_ms").above_zero();
    if (time.q1_ms > time.median_ms || time.median_ms > time.q3_ms)
        from.at("median_ms").fail("is not between the quartiles");
    time.repeats = from.at("repeats").count();
    time.graph_ms = optional_above_zero(from, "graph_ms");
    return time;
}

GridPoint point_of(const JsonMember& from, Names kinds) {
    GridPoint point;
    static_cast<GridTime&>(point) = time_of(from);
    point.product = one_of(from, "product", kGridProducts);
    point.kind = one_of(from, "kind", kinds);
    point.out = one_of(from, "out", kOuts);
    point.m = from.at("m").count();
    point.n = from.at("n").count();
    point.k = from.at("k").count();
    return point;
}

GridRoof roof_of(const JsonMember& from) {
    return {from.at("tflops").above_zero(), one_of(from, "product", kGridProducts), from.at("m").count(),
            from.at("n").count(), from.at("k").count()};
}

GridCast cast_of(const JsonMember& from) {
    GridCast cast;
    static_cast<GridTime&>(cast) = time_of(from);
    cast.what = one_of(from, "what", kTensors);
    cast.recipe = one_of(from, "recipe", grid_recipes());
    cast.rows = from.at("rows").count();
    cast.cols = from.at("cols").count();
    cast.bytes = from.at("bytes").above_zero();
    cast.both_ms = optional_above_zero(from, "both_ms");
    return cast;
}

GridGroup group_of(const JsonMember& from) {
    GridGroup group;
    static_cast<GridPoint&>(group) = point_of(from, kGridTwoKinds);
    group.groups = from.at("groups").count();
    return group;
}

GridQkv qkv_of(const JsonMember& from) {
    return {from.at("d").count(), from.at("m").count(), one_of(from, "kind", kGridTwoKinds),
            time_of(from.at("three")), time_of(from.at("one"))};
}

GridFormat format_of(const JsonMember& from) {
    GridFormat format;
    static_cast<GridTime&>(format) = time_of(from);
    format.kind = one_of(from, "kind", kGridFormats);
    format.n = from.at("n").count();
    format.bytes = from.at("bytes").above_zero();
    return format;
}

GridZeros zeros_of(const JsonMember& from) {
    GridZeros zeros;
    static_cast<GridTime&>(zeros) = time_of(from);
    zeros.kind = one_of(from, "kind", kGridTwoKinds);
    zeros.n = from.at("n").count();
    zeros.random_ms = from.at("random_ms").above_zero();
    return zeros;
}

GridCeiling ceiling_of(const JsonMember& from) {
    GridCeiling ceiling;
    static_cast<GridTime&>(ceiling) = time_of(from);
    std::vector<std::string_view> what = {"copy"};
    what.insert(what.end(), kGridCeilings.begin(), kGridCeilings.end());
    ceiling.what = one_of(from, "what", what);
    ceiling.when = one_of(from, "when", kWhens);
    return ceiling;
}

GridClocks clocks_of(const JsonMember& from) {
    GridClocks clocks{optional_from_zero(from, "sm_mhz_low"),  optional_from_zero(from, "sm_mhz_median"),
                      optional_from_zero(from, "sm_mhz_high"), optional_from_zero(from, "memory_mhz"),
                      optional_from_zero(from, "power_w"),     optional_from_zero(from, "power_limit_w"),
                      optional_from_zero(from, "hottest_c"),   ""};
    if (from.has("slowed_by")) clocks.slowed_by = from.at("slowed_by").filled_text();
    return clocks;
}

template <class Read>
auto all_of(const JsonMember& from, const char* name, Read&& read) {
    std::vector<decltype(read(from))> out;
    for (const JsonMember& element : from.at(name).elements()) out.push_back(read(element));
    return out;
}

// ---- write ----

// 4 significant digits in the shortest form: a file of a thousand times.
std::string digits(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "null"; }
std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Members of one object, on one line.
class Line {
  public:
    Line& text(const char* name, const std::string& value) { return put(name, quoted(value)); }
    Line& number(const char* name, double value) { return put(name, digits(value)); }
    Line& whole(const char* name, double value) { return put(name, fmt::format("{:.0f}", value)); }
    Line& time(const GridTime& time) {
        if (time.status != 0) {
            whole("status", time.status).text("from", time.from).text("words", time.words);
        } else {
            number("median_ms", time.median_ms).number("q1_ms", time.q1_ms).number("q3_ms", time.q3_ms);
            whole("repeats", time.repeats);
            if (time.graph_ms > 0) number("graph_ms", time.graph_ms);
        }
        if (!time.kernel.empty()) text("kernel", time.kernel);
        return *this;
    }
    Line& point(const GridPoint& p) {
        text("product", p.product).whole("m", p.m).whole("n", p.n).whole("k", p.k).text("kind", p.kind);
        return text("out", p.out).time(p);
    }
    Line& put(const char* name, const std::string& json) {
        out_ += fmt::format("{}\"{}\":{}", out_.empty() ? "" : ",", name, json);
        return *this;
    }
    std::string str() const { return "{" + out_ + "}"; }

  private:
    std::string out_;
};

template <class Values, class Write>
std::string list(const Values& values, Write&& write) {
    std::string out = "[";
    for (const auto& value : values) {
        if (out.size() > 1) out += ",";
        out += "\n " + write(value);
    }
    return out + "]";
}

std::string roof_json(const GridRoof& r) {
    return Line()
        .number("tflops", r.tflops)
        .text("product", r.product)
        .whole("m", r.m)
        .whole("n", r.n)
        .whole("k", r.k)
        .str();
}

std::string roofs_json(const GridRoofs& roofs) {
    Line line;
    line.number("memory_tb_s", roofs.memory_tb_s);
    if (roofs.bf16.tflops > 0) line.put("bf16", roof_json(roofs.bf16));
    if (roofs.fp8.tflops > 0) line.put("fp8", roof_json(roofs.fp8));
    return line.str();
}

std::string clocks_json(const GridClocks& c) {
    Line line;
    const std::array<std::pair<const char*, double>, 7> all = {{{"sm_mhz_low", c.sm_mhz_low},
                                                                {"sm_mhz_median", c.sm_mhz_median},
                                                                {"sm_mhz_high", c.sm_mhz_high},
                                                                {"memory_mhz", c.memory_mhz},
                                                                {"power_w", c.power_w},
                                                                {"power_limit_w", c.power_limit_w},
                                                                {"hottest_c", c.hottest_c}}};
    for (const auto& [name, value] : all)
        if (value > 0) line.whole(name, value);
    if (!c.slowed_by.empty()) line.text("slowed_by", c.slowed_by);
    return line.str();
}

std::string host_copy_json(const GridHostCopy& h) {
    Line line;
    if (h.bytes > 0) line.whole("bytes", h.bytes);
    if (h.up_ms > 0) line.number("up_ms", h.up_ms);
    if (h.down_ms > 0) line.number("down_ms", h.down_ms);
    if (h.both_ms > 0) line.number("both_ms", h.both_ms);
    return line.str();
}

}  // namespace

GemmGrid gemm_grid_of(const JsonMember& result) {
    GemmGrid grid;
    grid.device = result.at("device").filled_text();
    grid.cublaslt = result.at("cublaslt").filled_text();
    grid.date = result.at("date").filled_text();
    grid.command = result.at("command").filled_text();
    for (const auto& [name, fact] : result.at("facts").members())
        grid.facts.emplace_back(name, fact.filled_text());
    grid.seconds = result.at("seconds").at_least_zero();
    grid.drift_pct = result.at("drift_pct").number();
    grid.skipped = all_of(result, "skipped", [](const JsonMember& from) {
        return GridSkipped{from.at("what").filled_text(), from.at("why").filled_text()};
    });
    grid.clocks = clocks_of(result.at("clocks"));
    const JsonMember roofs = result.at("roofs");
    grid.roofs.memory_tb_s = roofs.at("memory_tb_s").above_zero();
    grid.roofs.bf16 = roof_of(roofs.at("bf16"));
    if (roofs.has("fp8")) grid.roofs.fp8 = roof_of(roofs.at("fp8"));  // a card may have none
    grid.ceilings = all_of(result, "ceilings", ceiling_of);
    grid.points = all_of(result, "points", [](const JsonMember& from) { return point_of(from, kGridKinds); });
    grid.casts = all_of(result, "casts", cast_of);
    grid.align = all_of(result, "align", [](const JsonMember& from) {
        GridAlign align;
        static_cast<GridPoint&>(align) = point_of(from, kGridTwoKinds);
        return align;
    });
    grid.qkv = all_of(result, "qkv", qkv_of);
    grid.formats = all_of(result, "formats", format_of);
    grid.zeros = all_of(result, "zeros", zeros_of);
    const JsonMember copy = result.at("host_copy");
    grid.host_copy = {optional_from_zero(copy, "bytes"), optional_above_zero(copy, "up_ms"),
                      optional_above_zero(copy, "down_ms"), optional_above_zero(copy, "both_ms")};
    grid.groups = all_of(result, "groups", group_of);
    return grid;
}

std::string gemm_grid_json(const GemmGrid& grid, std::string_view header) {
    Line facts;
    for (const auto& [name, value] : grid.facts) facts.text(name.c_str(), value);
    std::string out = "{\"bench\":\"gemm-grid\",";
    if (!header.empty()) out += std::string(header) + ",";
    const auto member = [&](const char* name, const std::string& json, bool last = false) {
        out += fmt::format("\n\"{}\":{}{}", name, json, last ? "" : ",");
    };
    member("device", quoted(grid.device));
    member("cublaslt", quoted(grid.cublaslt));
    member("date", quoted(grid.date));
    member("command", quoted(grid.command));
    member("facts", facts.str());
    member("seconds", digits(grid.seconds));
    member("drift_pct", digits(grid.drift_pct));
    member("skipped", list(grid.skipped, [](const GridSkipped& s) {
               return Line().text("what", s.what).text("why", s.why).str();
           }));
    member("clocks", clocks_json(grid.clocks));
    member("roofs", roofs_json(grid.roofs));
    member("ceilings", list(grid.ceilings, [](const GridCeiling& c) {
               return Line().text("what", c.what).text("when", c.when).time(c).str();
           }));
    const auto point = [](const GridPoint& p) { return Line().point(p).str(); };
    member("points", list(grid.points, point));
    member("casts", list(grid.casts, [](const GridCast& c) {
               Line line;
               line.text("what", c.what).text("recipe", c.recipe).whole("rows", c.rows).whole("cols", c.cols);
               line.whole("bytes", c.bytes).time(c);
               if (c.both_ms > 0) line.number("both_ms", c.both_ms);
               return line.str();
           }));
    member("align", list(grid.align, point));
    member("qkv", list(grid.qkv, [](const GridQkv& q) {
               return Line()
                   .whole("d", q.d)
                   .whole("m", q.m)
                   .text("kind", q.kind)
                   .put("three", Line().time(q.three).str())
                   .put("one", Line().time(q.one).str())
                   .str();
           }));
    member("formats", list(grid.formats, [](const GridFormat& f) {
               return Line().text("kind", f.kind).whole("n", f.n).whole("bytes", f.bytes).time(f).str();
           }));
    member(
        "zeros", list(grid.zeros, [](const GridZeros& z) {
            return Line().text("kind", z.kind).whole("n", z.n).time(z).number("random_ms", z.random_ms).str();
        }));
    member("host_copy", host_copy_json(grid.host_copy));
    member(
        "groups",
        list(grid.groups, [](const GridGroup& g) { return Line().whole("groups", g.groups).point(g).str(); }),
        true);
    return out + "}";
}

}  // namespace fp8lab
