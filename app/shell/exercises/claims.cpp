#include "app/shell/exercises/claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "labs/ui/draw.h"
#include "labs/ui/widgets.h"

namespace fp8lab {
namespace {

void do_experiment(Lab& lab, const Claim& claim) {
    lab.reset();
    for (const Event& event : claim.experiment) {
        if (event.kind == Event::Kind::set) set_field(lab.fields(), event.name + "=" + event.value);
        if (event.kind != Event::Kind::act) continue;
        lab.update();
        lab.act(event.name);
    }
    lab.update();
}

}  // namespace

const std::vector<Claim>& ClaimCards::claims() {
    if (!claims_) {
        claims_.emplace();
        try {
            *claims_ = load_claims();
        } catch (const Error& error) {
            problem_ = error.what();
        }
    }
    return *claims_;
}

bool ClaimCards::any(std::string_view lab) {
    return std::ranges::any_of(claims(), [&](const Claim& claim) { return claim.lab == lab; });
}

void ClaimCards::draw(ui::Context& context, Lab& lab, bool locked) {
    if (!problem_.empty()) ui::warning(context, problem_);
    if (!any(lab.info().id)) return;
    ui::divider(context);
    ui::text(context, "Claims to check", Role::text, kBold15);
    for (std::size_t i = 0; i < claims_->size(); ++i) {
        const Claim& claim = (*claims_)[i];
        if (claim.lab != lab.info().id) continue;
        ImGui::Dummy({1, context.px(2)});
        ui::wrapped(context, "\u201c" + claim.claim + "\u201d", Role::text, kMono13);
        ui::wrapped(context, claim.place(), Role::muted, kSans13);
        std::string ruling(words_of(claim.ruling));
        ruling.front() = static_cast<char>(ruling.front() - 'a' + 'A');
        ui::text(context, ruling, Role::text, kBold13);
        ui::wrapped(context, claim.verdict_text(), Role::text, kSans13);
        if (ui::button(context, fmt::format("claim.{}", i), "Show it",
                       {.disabled = locked, .why_disabled = "An exercise is in progress.", .width = 96})) {
            do_experiment(lab, claim);
            context.notice = {"The experiment of the claim is set", "Ctrl Z brings your settings back"};
        }
    }
}

}  // namespace fp8lab
