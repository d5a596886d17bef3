#include "core/lesson/claim.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/named.h"
#include "core/base/units.h"
#include "core/files/files.h"
#include "core/json/read_json.h"
#include "core/lesson/runs.h"

namespace fp8lab {
namespace {

using Json = nlohmann::json;

constexpr std::array kRulings = {Named{Ruling::wrong, "wrong"}, Named{Ruling::half_right, "half right"},
                                 Named{Ruling::right, "right"}, Named{Ruling::open, "open"}};

bool is_id(std::string_view text) {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    };
    return !text.empty() && std::ranges::all_of(text, fits);
}

Claim claim_from(const Json& json) {
    Claim out;
    out.id = json.at("id").get<std::string>();
    if (!is_id(out.id)) throw input_error("", "'" + out.id + "' is not an id");
    out.lab = json.at("lab").get<std::string>();
    out.source = json.at("source").get<std::string>();
    out.line = json.value("line", 0);
    out.claim = json.at("claim").get<std::string>();
    out.ruling = parse_named(kRulings, "ruling", json.at("ruling").get<std::string>(), "");
    for (const Json& event : json.at("experiment"))
        out.experiment.push_back(parse_event(event.get<std::string>()));
    for (const Json& finding : json.at("findings"))
        out.findings.push_back({.metric = finding.at("metric").get<std::string>(),
                                .value = finding.at("value").get<double>(),
                                .tolerance = finding.value("tolerance", 0.0)});
    out.verdict = with_runs(json.at("verdict").get<std::string>());
    static_cast<void>(out.verdict_text());  // the {} fit
    return out;
}

}  // namespace

std::string_view words_of(Ruling ruling) { return name_in(kRulings, ruling); }

std::string Claim::place() const { return line > 0 ? fmt::format("{}, line {}", source, line) : source; }

std::string Claim::verdict_text() const {
    fmt::dynamic_format_arg_store<fmt::format_context> numbers;
    for (const Finding& finding : findings) numbers.push_back(format_number(finding.value, 4, true));
    return fmt::vformat(verdict, numbers);
}

std::vector<Claim> parse_claims(std::string_view text, const std::string& where) {
    std::vector<Claim> out;
    try {
        for (const Json& entry : Json::parse(text)) {
            Claim claim = claim_from(entry);
            if (std::ranges::count(out, claim.id, &Claim::id) > 0)
                throw input_error("", "'" + claim.id + "' is there twice");
            out.push_back(std::move(claim));
        }
    } catch (const Error& error) {
        throw input_error(where, fmt::format("after {} claims: {}", out.size(), error.why()));
    } catch (const std::exception& error) {
        throw input_error(where, fmt::format("after {} claims: {}", out.size(), json_reason(error.what())));
    }
    return out;
}

std::vector<Claim> load_claims() {
    const auto file = asset("claims.json");
    return parse_claims(read_text(file), file.string());
}

}  // namespace fp8lab
