// The part "draft" of L17: what a copy of a transformer in fewer bits is worth as its own draft (core/inference/serve/draft.h).
// Acceptance is measured, the time of a token is its cost in passes of the target.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/figure/figure.h"
#include "core/inference/serve/draft.h"
#include "labs/serve/model_network.h"
#include "labs/table/long.h"

namespace fp8lab::serve {

// The drafts that the figure compares with the chosen one.
inline constexpr std::array kDrafts = {"e4m3", "nvfp4", "mxfp4", "e2m1"};
inline constexpr int kLongestDraft = 16;

struct DraftSpec {
    NetworkSpec network = {.network = "transformer"};
    std::string draft = "nvfp4";  // a scheme
    bool both = true;             // weights and inputs; else the inputs stay in BF16
    double temperature = 1;
    bool others = true;  // kDrafts too
    bool operator==(const DraftSpec&) const = default;
};

struct DraftCurve {
    const LowFormat* format = nullptr;
    double bits = 0;  // per weight, scales included
    DraftRun run = {};
};
struct Drafts {
    DraftSpec spec = {};
    std::string network = {}, data = {};
    std::vector<DraftCurve> curves = {};  // the chosen one first; empty: not computed
    const DraftCurve* chosen() const { return curves.empty() ? nullptr : &curves.front(); }
    int longest() const { return curves.empty() ? 0 : static_cast<int>(curves.front().run.longest()); }
};

// What a token of the draft costs, in passes of the target.
struct DraftPrice {
    std::string cost = "bytes";   // "bytes", "1/7", "own"
    double own = 0.25;            // passes
    std::string target = "bf16";  // or "e4m3": the bits that a pass of the target reads
    double of(double bits) const;
    bool operator==(const DraftPrice&) const = default;
};

// Keeps the model, and what it has measured of it.
class DraftMaker {
  public:
    // Throws usage_error: a multilayer perceptron, a scheme for weights only with lowered inputs, measure_draft().
    Drafts operator()(const DraftSpec& spec, const table::Told<Drafts>& told);

  private:
    DraftSpec of_;  // of what is kept; the draft and `others` do not count
    std::shared_ptr<TokenModel> model_;
    std::map<std::string, DraftCurve, std::less<>> known_;
};

// One verification, token by token.
struct DraftToken {
    std::string text = {};  // one character
    double p = 0, q = 0;    // of the target and of the draft
    bool tried = true;      // false: behind one that was refused
    bool accepted = false;
};
struct DraftRound {
    std::string context = {};  // held-out characters before it
    std::vector<DraftToken> proposed = {};
    int accepted = 0;
    std::string next = {};  // the target's own token behind the accepted ones
    bool known() const { return !proposed.empty(); }
};
struct RoundSpec {
    DraftSpec draft = {};
    int length = 4, number = 1;  // of the round: other text, other draws
    bool operator==(const RoundSpec&) const = default;
};
class RoundMaker {
  public:
    DraftRound operator()(const RoundSpec& spec);

  private:
    NetworkSpec of_;
    std::shared_ptr<TokenModel> model_;
    std::string symbols_;
};

// What a speed-up of 7 would need at that cost: "every token accepted and drafts without end".
std::string needed_for_seven(double cost);

std::string speedup_title(const Drafts& drafts, const DraftPrice& price);
std::string acceptance_title(const Drafts& drafts);
std::string round_title(const DraftRound& round);
Figure speedup_figure(const Drafts& drafts, const DraftPrice& price, int length);
Figure acceptance_figure(const Drafts& drafts);

}  // namespace fp8lab::serve
