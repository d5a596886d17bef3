#include "labs/course/claim_run.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace fp8lab {

bool FoundNumber::agrees() const {
    return std::abs(now - card.value) <= card.tolerance * std::max(std::abs(now), std::abs(card.value));
}

std::vector<FoundNumber> numbers_of(const Claim& claim, const State& after) {
    std::vector<FoundNumber> out;
    for (const Finding& finding : claim.findings)
        out.push_back({.card = finding, .now = after.number(finding.metric)});
    return out;
}

std::vector<FoundNumber> repeat_claim(const Claim& claim, const Between& between) {
    const auto lab = find_lab(claim.lab).make();
    for (const Event& event : claim.experiment) carry_out(*lab, {&event, 1}, between);
    if (claim.experiment.empty()) carry_out(*lab, {}, between);
    return numbers_of(claim, observe(*lab));
}

const Claim& find_claim(const std::vector<Claim>& claims, std::string_view id, const std::string& where) {
    const auto found = std::ranges::find(claims, id, &Claim::id);
    if (found != claims.end()) return *found;
    const std::string lab(id.substr(0, id.find('-')));
    std::vector<std::string> near;
    for (const Claim& claim : claims)
        if (claim.lab == lab) near.push_back(claim.id);
    if (near.empty())
        for (const Claim& claim : claims) near.push_back(claim.id);
    throw unknown_name(where, "claim", id, near, [](const std::string& text) { return text; });
}

}  // namespace fp8lab
