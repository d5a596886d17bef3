// L17, "Serve it": what low-bit schemes cost a trained model when it is served, and how fast a GPU serves with them. Six parts, a
// value of the field "experiment" each; what they compute is in model_methods.h, model_draft.h, model_rollout.h, model_qat.h,
// model_kv.h and model_speed.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "labs/serve/model_kv.h"
#include "labs/serve/model_methods.h"
#include "labs/serve/parts/model_draft.h"
#include "labs/serve/parts/model_qat.h"
#include "labs/serve/parts/model_rollout.h"
#include "labs/serve/parts/model_speed.h"
#include "labs/table/long.h"
#include "labs/table/table_lab.h"

namespace fp8lab::serve {

struct Params {
    std::string experiment = "methods";  // "methods", "draft", "rollout", "qat", "kv", "speed"
    // Of methods and qat; of the parts that need tokens `model`. Own: of both.
    std::string network = "digits-s1", model = "transformer", path;
    // methods; qat reads the scheme too
    std::string scheme = "nvfp4", lower = "weights", method = "nearest";
    double amax = 1, damp = 0.01;
    std::string order = "given";
    int rows = kMostSeen;
    // draft
    std::string draft = "nvfp4", draft_lower = "both", cost = "bytes", target = "bf16";
    int length = 4;
    double temperature = 1;  // of draft and rollout
    double own_cost = 0.25;  // passes of the target, with cost "own"
    int round = 1;           // which verification is shown
    bool others = true;      // draft and rollout: what the figure compares the chosen one with
    // rollout
    std::string rollout = "e4m3-row", rollout_kv = "bf16", truncate = "off";
    int tokens = 56, answers = 128;
    // qat
    std::string teacher = "labels";
    int steps = 200;
    double lr = 5e-4;
    // kv
    std::string cache = "one";
    double k_factor = 1;
    // speed
    std::string card = "h200", weights = "e4m3-row", served_kv = "bf16", batch = "1";

    NetworkSpec network_spec() const { return spec_of(network); }
    NetworkSpec tokens_spec() const { return spec_of(model); }
    NetworkSpec spec_of(const std::string& name) const {
        return name == "own" ? NetworkSpec{name, path, version_of(path)} : NetworkSpec{name};
    }
    CommonSpec common() const {
        return {network_spec(), lower == "both", rows, damp, find_column_order(order, "order")};
    }
    ChosenSpec chosen() const { return {common(), scheme, method, amax}; }
    StemsSpec stems() const { return {common(), is_stem(scheme) ? "" : scheme}; }
    // Of a scheme that inputs can be in.
    std::optional<GainsSpec> gains() const;
    KvSpec kv() const { return {tokens_spec(), cache, k_factor}; }
    // Where the amax is moved and has an effect.
    std::optional<AmaxSpec> amax_spec() const;
    // model_parts.cpp
    DraftSpec draft_spec() const;
    DraftPrice price() const { return {cost, own_cost, target}; }
    RoundSpec round_spec() const;
    RolloutSpec rollout_spec() const;
    QatSpec qat_spec() const { return {network_spec(), scheme, steps, lr}; }
    SpeedSpec speed_spec() const {
        return {card, find_served_cache(served_kv), find_served_weights(weights), std::stoi(batch)};
    }
};

struct Serve {
    static const LabInfo kInfo;
    using Params = serve::Params;
    Serve();
    std::vector<table::Row> rows(Params& params) const;
    // "methods": "methods", "layers", "amax"; "draft": "speedup"; "rollout": "ess"; "qat": "train_back"; "kv": "kv_scale";
    // "speed": "tokens_per_s".
    static std::span<const table::Experiment<Serve>> experiments();
    static std::span<const NamedJudge> judges();
    std::vector<table::Part*> parts() {
        return {&chosen, &stems, &gains, &amax, &drafts, &round, &rollouts, &qat, &kv};
    }
    // Of the formats of the part that is shown. INT4 and NF4 have none, and neither has a cache of keys and values.
    std::vector<std::string> recipes() const;
    Figure thumbnail() const;
    void settle() { problem.clear(); }
    bool perform(std::string_view action);  // "round": the next verification
    void tell(const Error& error) { problem = error.what(); }
    Provenance provenance() const;
    std::string device() const;  // of the part speed: what was recorded
    bool stale() const;          // what is shown first belongs to older parameters

    Params params;
    std::string problem;  // why something cannot be computed, in a window
    // methods. The chosen one is quick for the networks of digits, and comes before the others.
    table::Long<ChosenSpec, Chosen> chosen;
    table::Long<StemsSpec, Stems> stems;  // nothing while the amax is moved
    table::Long<GainsSpec, Gains> gains;
    table::Long<AmaxSpec, AmaxSweep> amax;
    table::Long<DraftSpec, Drafts> drafts;
    table::Computed<RoundSpec, DraftRound> round;
    table::Long<RolloutSpec, Rollouts> rollouts;
    table::Long<QatSpec, Qat> qat;
    table::Long<KvSpec, Kv> kv;

  private:
    std::vector<Figure> methods_figures() const;
    std::vector<table::MetricRow> methods_metrics() const;
    std::vector<Figure> kv_figures() const { return {kv_figure(*kv)}; }
    std::vector<table::MetricRow> kv_metrics() const;
    bool has_kv() const { return kv->own() != nullptr && kv->spec == params.kv(); }
    bool has_chosen() const { return !chosen->layers.empty() && chosen->spec == params.chosen(); }
    // model_parts.cpp
    std::vector<Figure> draft_figures() const;
    std::vector<table::MetricRow> draft_metrics() const;
    // What there is belongs to the present fields, and all of the chosen one is there.
    bool has_drafts() const { return drafts->chosen() && drafts->spec == params.draft_spec(); }
    std::vector<Figure> rollout_figures() const;
    std::vector<table::MetricRow> rollout_metrics() const;
    bool has_rollouts() const { return rollouts->spec == params.rollout_spec() && rollouts->is_complete(); }
    std::vector<Figure> qat_figures() const;
    std::vector<table::MetricRow> qat_metrics() const;
    std::vector<Figure> speed_figures() const { return {speed_figure(speeds_of(params.speed_spec()))}; }
    std::vector<table::MetricRow> speed_metrics() const;
    bool has_qat() const { return qat->spec == params.qat_spec() && qat->is_complete(); }
};
using ServeLab = table::TableLab<Serve>;

std::vector<table::Row> part_rows(Params& params);   // model_parts.cpp: the fields "others" and "round"
std::vector<table::Row> speed_rows(Params& params);  // model_parts.cpp

// model_methods_figures.cpp
Stems usual_stems();  // those of the default network, as recorded: for the home card, before anything is computed
std::string methods_title(const Stems& stems);
std::string layers_title(const Chosen& chosen);
std::string gains_title(const Gains& gains);
std::string amax_title(const AmaxSweep& sweep);
Figure methods_figure(const Stems& stems, const Chosen& chosen);
Figure layers_figure(const Chosen& chosen);
Figure amax_figure(const AmaxSweep& sweep, double factor, const Chosen& chosen);
// "24 tokens"; fewer than asked for: "24 tokens, the most that the context leaves".
std::string tokens_words(int asked, int longest);
// What the figures and tables of all parts write.
std::string divergence_text(double value);  // "0.0173", "2.8e-4", "–"
// "divergence, nats"; of a network that does not classify "relative squared error". `of_axis`: what it is from, too.
std::string divergence_name(bool classifies, bool of_axis = false);
std::string times_text(double ratio);  // "12", "2.6"
std::string label_of(std::string_view scheme);
std::string method_label(std::string_view method);  // "GPTQ"

}  // namespace fp8lab::serve
