// L11's model: what a change of a field does to the numbers, own files, and the numbers that the lesson states.
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/files.h"
#include "core/tensors/safetensors.h"
#include "labs/lower/model.h"
#include "tests/scratch.h"
#include "tests/unit/labs/lesson_numbers.h"

using namespace fp8lab;
using namespace fp8lab::lower;

namespace {

double metric(const LowerLab& lab, std::string_view name) {
    for (const Metric& m : lab.metrics())
        if (m.name == name) return m.value;
    FAIL("no metric " << name);
    return 0;
}
void set(LowerLab& lab, std::initializer_list<const char*> assignments) {
    for (const char* assignment : assignments) set_field(lab.fields(), assignment);
    lab.update();
}
double after(std::initializer_list<const char*> assignments, std::string_view name) {
    LowerLab lab;
    set(lab, assignments);
    return metric(lab, name);
}

}  // namespace

TEST_CASE("the numbers of L11's lesson") {
    const auto stated = test::lesson_numbers("lower");
    const auto says = [&](const char* text, double value, double within) {
        CAPTURE(text);
        CHECK(stated.contains(text));
        CHECK(std::fabs(std::stod(text) - value) <= within);
    };
    LowerLab lab;
    says("97.3", metric(lab, "accuracy_fp32_pct"), 0.05);
    says("0.0018", metric(lab, "e4m3.divergence"), 0.00005);
    says("0.034", metric(lab, "nvfp4.divergence"), 0.0005);
    says("0.082", metric(lab, "mxfp4.divergence"), 0.0005);
    says("0.068", metric(lab, "e2m1.divergence"), 0.0006);
    says("44", metric(lab, "share_pct_2"), 0.5);
    says("20.6", after({"uniform=nvfp4"}, "sqnr_db_a_2"), 0.05);
    set(lab, {"w1=mxfp6-e2m3", "w2=mxfp4", "w3=mxfp6-e2m3", "w4=mxfp6-e2m3", "revealed=on"});
    says("5.4", metric(lab, "bits"), 0.05);
    says("0.0052", metric(lab, "divergence"), 0.00005);
    says("0.9", metric(lab, "bits") - metric(lab, "nvfp4.bits"), 0.05);
    says("6.5", metric(lab, "nvfp4.divergence") / metric(lab, "divergence"), 0.06);
    says("19", metric(lab, "worst_within") / metric(lab, "best_within"), 0.5);
    LowerLab outliers;
    set(outliers, {"experiment=ranges", "uniform=nvfp4", "outlier_ratio=64"});
    says("76", metric(outliers, "accuracy_pct"), 0.5);
    says("26.3", metric(outliers, "sqnr_db_a_2"), 0.05);
    CHECK(metric(outliers, "underflow_pct_a_2") == doctest::Approx(25).epsilon(0.04));  // a quarter
    says("96.7", after({"uniform=nvfp4", "outlier_ratio=64", "smoothing=0.5"}, "accuracy_pct"), 0.05);
    LowerLab bright;
    set(bright, {"uniform=e4m3", "act_scale=calibrated", "contrast=4"});
    says("91.1", metric(bright, "accuracy_pct"), 0.05);
    says("38", metric(bright, "saturated_pct_a_1"), 0.5);
    says("97.1", after({"uniform=e4m3", "contrast=4"}, "accuracy_pct"), 0.05);
    const auto clipped = [&](const char* network, const char* format) {
        return after({network, format, "outlier_ratio=64", "act_scale=calibrated", "percentile=95"},
                     "accuracy_pct");
    };
    says("95.8", clipped("network=digits", "uniform=nvfp4"), 0.05);
    says("96.0", clipped("network=digits-2", "uniform=nvfp4"), 0.05);
    says("94.9", clipped("network=digits-3", "uniform=nvfp4"), 0.05);
    says("2",
         after({"uniform=e4m3", "outlier_ratio=64", "act_scale=calibrated"}, "accuracy_pct") -
             clipped("network=digits", "uniform=e4m3"),
         0.05);
    LowerLab cascade;
    set(cascade, {"experiment=cascade", "tau=0.9"});
    says("8", metric(cascade, "repeated_pct"), 0.5);
    says("95.3", metric(cascade, "accuracy_low_pct"), 0.05);
    says("0.58", metric(cascade, "cost"), 0.005);
    says("3.56", after({"experiment=kv", "cache=nvfp4"}, "tokens") / after({"experiment=kv"}, "tokens"),
         0.005);
}

TEST_CASE("the numbers of L11's lesson: tokens in two formats") {
    const auto stated = test::lesson_numbers("lower");
    LowerLab lab;
    set(lab, {"experiment=tokens", "all_layers=on"});
    const auto says = [&](const char* text, double value, double within) {
        CAPTURE(text);
        CHECK(stated.contains(text));
        CHECK(std::fabs(std::stod(text) - value) <= within);
    };
    says("0.053", metric(lab, "all_low"), 0.0005);
    says("0.0039", metric(lab, "all_high"), 0.00005);
    says("0.0388", metric(lab, "attention.divergence_25"), 0.00005);
    says("0.0415", metric(lab, "confidence.divergence_25"), 0.00005);
    says("0.0409", metric(lab, "random.divergence_25"), 0.00006);
    says("0.012", metric(lab, "confidence.divergence_75"), 0.0005);
    says("0.017", metric(lab, "random.divergence_75"), 0.0005);
    says("0.0297", metric(lab, "oracle.divergence_25"), 0.00005);
    says("12.75", metric(lab, "weight_bits"), 0.005);
    CHECK(metric(lab, "token_divergence") == metric(lab, "attention.divergence_25"));
    set(lab, {"token_by=layers", "high_1=on", "high_5=on"});
    says("0.0313", metric(lab, "token_divergence"), 0.00005);
    says("23", metric(lab, "high_share_pct"), 0.5);
    CHECK(metric(lab, "best_layers") == metric(lab, "token_divergence"));
}

TEST_CASE("tokens: what is set is a point of the figure's lines, and kept sweeps are what fresh ones are") {
    LowerLab lab;
    set(lab, {"experiment=tokens"});
    for (const ImportanceInfo& info : importances())
        for (const char* share : {"25", "50", "75"}) {
            CAPTURE(info.name);
            set_field(lab.fields(), "important=" + std::string(info.name));
            set_field(lab.fields(), std::string("token_share=") + share);
            lab.update();
            CHECK(metric(lab, "token_divergence") ==
                  metric(lab, std::string(info.name) + ".divergence_" + share));
        }
    CHECK(std::isnan(metric(lab, "best_layers")));
    set(lab, {"token_by=layers"});
    CHECK(metric(lab, "token_divergence") == metric(lab, "all_low"));
    CHECK(metric(lab, "high_share_pct") == 0);
    for (const char* layer : {"high_1=on", "high_2=on", "high_3=on", "high_4=on", "high_5=on", "high_6=on",
                              "high_7=on", "high_8=on"})
        set(lab, {layer});
    CHECK(metric(lab, "token_divergence") == metric(lab, "all_high"));
    CHECK(metric(lab, "high_share_pct") == doctest::Approx(100));
    CHECK(metric(lab, "weight_bits") == doctest::Approx(8.25));
    set(lab, {"all_layers=on", "high_3=off"});
    CHECK(lab->tokens->sweep->subsets.size() == 256);
    CHECK(lab->tokens->sweep->subsets.at(0xFB) == metric(lab, "token_divergence"));
    set(lab, {"all_layers=off"});
    CHECK(lab->tokens->sweep->subsets.empty());
    set(lab, {"token_model=2", "token_by=tokens", "important=rare", "token_share=50"});
    LowerLab fresh;
    set(fresh, {"experiment=tokens", "token_model=2", "important=rare", "token_share=50"});
    CHECK(metric(lab, "token_divergence") == metric(fresh, "token_divergence"));
    CHECK(metric(lab, "random_divergence") == metric(fresh, "random_divergence"));
}

TEST_CASE("the best mix under a budget has at most those bits and is the best of all that have") {
    LowerLab lab;
    set(lab, {"budget=5"});
    CHECK(metric(lab, "bits") == 8.25);  // no effect before the mixes are shown
    lab.act("reveal");
    lab.update();
    REQUIRE(lab->cloud() != nullptr);
    for (const char* budget : {"budget=4.5", "budget=5.6", "budget=8"}) {
        set(lab, {budget});
        const double bits = metric(lab, "bits"), most = std::stod(std::string(budget).substr(7));
        CHECK(bits <= most);
        for (const MixPoint& point : lab->cloud()->all.points)
            if (point.bits <= most) CHECK(point.divergence >= metric(lab, "divergence"));
    }
    set(lab, {"budget=16", "uniform=nvfp4"});
    lab.act("take_best");
    lab.update();
    CHECK(lab->params.uniform == "mix");
    CHECK(metric(lab, "bits") <= 4.51);
    CHECK(metric(lab, "divergence") < metric(lab, "nvfp4.divergence"));
    CHECK_THROWS_AS(lab.act("unknown"), Error);
}

TEST_CASE("the menus of formats are rows of the table of lowered formats, in its order, under its names") {
    LowerLab lab;
    std::size_t menus = 0;
    for (const Field& field : lab.fields()) {
        if (field.choices.empty() || field.info.name == "cache") continue;
        std::vector<std::size_t> rows;
        for (const Choice& choice : field.choices) {
            const auto row = std::ranges::find(low_formats(), choice.id, &LowFormat::id);
            if (row == low_formats().end()) continue;
            CHECK(choice.label == row->label);
            rows.push_back(static_cast<std::size_t>(row - low_formats().begin()));
        }
        if (rows.empty()) continue;
        ++menus;
        CAPTURE(field.info.name);
        CHECK(std::ranges::is_sorted(rows));
        CHECK(rows.front() == 1);  // all but fp32
        const bool chip = field.info.hidden;
        const auto offered = std::ranges::count_if(low_formats(), [&](const LowFormat& format) {
            const bool both =
                meet(format.in, RecipeList::weights) && meet(format.in, RecipeList::activations);
            return chip ? meet(format.in, RecipeList::mixes) : both && format.id != "fp32";
        });
        CHECK(static_cast<std::ptrdiff_t>(rows.size()) == offered);
    }
    CHECK(menus == 2 + 2 + 2 + 2 * kLayerFields);
}

TEST_CASE("an input's format is that of the weights unless it is set apart") {
    LowerLab lab;
    set(lab, {"w1=nvfp4", "a2=bf16"});
    const Mix& mix = lab->outcome->mix;
    CHECK(mix.activations[0]->id == "nvfp4");
    CHECK(mix.activations[1]->id == "bf16");
    CHECK(mix.weights[1]->id == "mxfp8");
    set(lab, {"lower=weights"});
    for (const LowFormat* format : lab->outcome->mix.activations) CHECK(format->id == "bf16");
    set(lab, {"lower=both", "uniform=mxfp4"});
    CHECK(uniform_of(lab->outcome->mix)->id == "mxfp4");
}

TEST_CASE("own files: a checkpoint is a network, FILE:TENSOR one layer, what is neither is refused") {
    const std::string file = FP8LAB_SOURCE "/assets/models/digits-s2.safetensors";
    LowerLab lab, shipped;
    set(shipped, {"network=digits-2", "uniform=nvfp4"});
    set(lab, {"network=digits-2"});
    set_field(lab.fields(), "file=" + file);
    set(lab, {"network=own", "uniform=nvfp4"});
    CHECK(metric(lab, "divergence") == metric(shipped, "divergence"));
    CHECK_FALSE(lab->outcome->setup->subject->random_inputs);
    set_field(lab.fields(), "file=" + file + ":w2");
    lab.update();
    CHECK(lab->outcome->layers.size() == 1);
    CHECK(lab->outcome->layers[0].inputs == 128);
    CHECK(lab->outcome->setup->subject->random_inputs);
    CHECK(metric(lab, "rel_l2_w_1") == doctest::Approx(metric(shipped, "rel_l2_w_2")));
    CHECK(std::isnan(metric(lab, "accuracy_pct")));
    const auto refused = [&](const std::string& name) {
        LowerLab fresh;
        set_field(fresh.fields(), "file=" + name);
        set_field(fresh.fields(), "network=own");
        CHECK_THROWS_AS(fresh.update(), Error);
        set_field(fresh.fields(), "network=digits");
        CHECK_NOTHROW(fresh.update());
        CHECK(fresh->outcome->layers.size() == 4);
    };
    refused("");
    refused("/no/such.safetensors");
    refused(file + ":w9");
    refused(FP8LAB_SOURCE "/README.md");
}

namespace {

// The value of a line of a figure where x is as given.
double on_line(const LowerLab& lab, std::string_view id, std::string_view name, double x) {
    for (const Figure& figure : lab.figures())
        for (const Series& series : figure.series)
            if (const auto* line = std::get_if<LineSeries>(&series.shape);
                line && figure.id == id && series.name == name)
                for (std::size_t i = 0; i < line->x->size(); ++i)
                    if (line->x->at(i) == x) return line->y->at(i);
    FAIL("no such line");
    return 0;
}

}  // namespace

TEST_CASE("what an experiment refused does not stop the others") {
    for (const std::string experiment : {"mix", "ranges", "cascade", "kv", "tokens"}) {
        CAPTURE(experiment);
        LowerLab lab;
        lab.update();
        for (const std::string& setting : {"experiment=" + experiment, std::string("network=own")})
            set_field(lab.fields(), setting);
        CHECK_THROWS_AS(lab.update(), Error);
        lab.reset();
        CHECK_NOTHROW(lab.update());
    }
}

TEST_CASE("one layer alone has the scales of the whole: of a network of one layer both are the same") {
    LowerLab lab;
    set_field(lab.fields(), "file=" FP8LAB_SOURCE "/assets/models/digits-s1.safetensors:w2");
    set(lab, {"network=own", "uniform=nvfp4", "probe=nvfp4", "contrast=4"});
    const double dynamic = metric(lab, "sensitivity_1");
    CHECK(dynamic == doctest::Approx(metric(lab, "divergence")).epsilon(1e-12));
    set(lab, {"act_scale=calibrated"});
    CHECK(metric(lab, "sensitivity_1") == doctest::Approx(metric(lab, "divergence")).epsilon(1e-12));
    CHECK(metric(lab, "sensitivity_1") > 1.5 * dynamic);  // four times brighter than what was calibrated on
    set(lab, {"margin=2"});
    CHECK(metric(lab, "sensitivity_1") == doctest::Approx(metric(lab, "divergence")).epsilon(1e-12));
    CHECK(metric(lab, "sensitivity_1") < 1.5 * dynamic);
}

TEST_CASE("all mixes have the scales of the own mix, which is one of them") {
    for (const char* scale : {"act_scale=dynamic", "act_scale=calibrated"}) {
        CAPTURE(scale);
        LowerLab lab;
        set(lab, {"w1=nvfp4", "w3=e4m3", "contrast=4", scale, "revealed=on"});
        for (const char* lower : {"lower=weights", "lower=both"}) {
            set(lab, {lower});
            const Cloud* cloud = lab->cloud();
            REQUIRE(cloud);
            const auto at = cloud->all.find(lab->outcome->mix);
            REQUIRE(at);
            CHECK(cloud->all.points[*at].divergence ==
                  doctest::Approx(metric(lab, "divergence")).epsilon(1e-9));
        }
    }
}

TEST_CASE(
    "the sweeps of the experiment ranges are at the settings of the others: the own mix is a point of them") {
    LowerLab lab;
    set(lab,
        {"experiment=ranges", "uniform=nvfp4", "act_scale=calibrated", "contrast=4", "outlier_ratio=64"});
    CHECK(on_line(lab, "outliers", "NVFP4", 64) == metric(lab, "accuracy_pct"));
    set(lab, {"act_scale=dynamic", "contrast=0.5"});
    CHECK(on_line(lab, "outliers", "NVFP4", 64) == metric(lab, "accuracy_pct"));
    CHECK(on_line(lab, "contrast", "NVFP4", 0.5) == metric(lab, "accuracy_pct"));
    set(lab, {"smoothing=0.75"});
    CHECK(on_line(lab, "outliers", "NVFP4##second", 64) == metric(lab, "accuracy_pct"));
    CHECK(on_line(lab, "contrast", "NVFP4", 0.5) == metric(lab, "accuracy_pct"));
    set(lab, {"uniform=e4m3", "act_scale=calibrated", "margin=1", "contrast=4"});
    CHECK(on_line(lab, "contrast", "E4M3##second", 4) == metric(lab, "accuracy_pct"));
    // A sweep that was kept is what a fresh one is.
    LowerLab fresh;
    set(fresh, {"experiment=ranges", "uniform=e4m3", "act_scale=calibrated", "margin=1", "contrast=4",
                "outlier_ratio=64", "smoothing=0.75"});
    for (const char* figure : {"outliers", "contrast"})
        for (const char* line : {"E4M3", "E4M3##second", "NVFP4", "NVFP4##second"})
            CHECK(on_line(lab, figure, line, 1) == on_line(fresh, figure, line, 1));
}

TEST_CASE(
    "calibration has an effect on the experiment ranges with dynamic scales too, and none on activations in "
    "BF16") {
    LowerLab lab;
    set(lab, {"experiment=ranges"});
    for (const char* field : {"batches", "percentile", "margin"}) CHECK(lab.why_not(field).empty());
    set(lab, {"lower=weights"});
    for (const char* field : {"act_scale", "batches", "percentile", "margin"})
        CHECK_FALSE(lab.why_not(field).empty());
    set(lab, {"experiment=mix", "lower=both"});
    for (const char* field : {"batches", "percentile", "margin"}) CHECK_FALSE(lab.why_not(field).empty());
}

TEST_CASE("networks without relu have no smoothing, one without classes no cascade") {
    LowerLab lab;
    set(lab, {"smoothing=0.5", "outlier_ratio=8"});
    CHECK(lab.why_not("smoothing").empty());
    set(lab, {"smoothing=off", "outlier_ratio=1", "network=teacher"});
    CHECK_FALSE(lab.why_not("smoothing").empty());
    CHECK(metric(lab, "divergence") > 0);
    set(lab, {"experiment=cascade"});
    CHECK(std::isnan(metric(lab, "cost")));
    for (const char* experiment :
         {"experiment=mix", "experiment=ranges", "experiment=cascade", "experiment=kv"}) {
        set(lab, {experiment});
        for (const Figure& figure : lab.figures()) CHECK(figure.id.size() > 1);
    }
}

TEST_CASE(
    "a network of more than five layers: every layer has its format, and a step of the greedy path is "
    "taken") {
    const Scratch scratch;
    SafeTensors file;
    file.metadata = {{"command_line", "--task digits --activation relu --loss cross-entropy --seed 1"}};
    const std::array<std::size_t, 8> sizes = {64, 24, 24, 20, 20, 16, 16, 10};
    for (std::size_t l = 1; l < sizes.size(); ++l) {
        SafeTensor w{{sizes[l], sizes[l - 1]}, std::vector<float>(sizes[l] * sizes[l - 1])},
            b{{sizes[l]}, std::vector<float>(sizes[l])};
        Rng(7, l).fill_normal(w.values, 0.2F);
        file.tensors["w" + std::to_string(l)] = w, file.tensors["b" + std::to_string(l)] = b;
    }
    write_file(scratch / "deep.safetensors", to_safetensors(file));
    LowerLab lab;
    set_field(lab.fields(), "file=" + scratch / "deep.safetensors");
    set(lab, {"network=own", "revealed=on"});
    REQUIRE(lab->outcome->layers.size() == 7);
    const Cloud* cloud = lab->cloud();
    REQUIRE(cloud != nullptr);
    CHECK(cloud->is_greedy());
    REQUIRE(cloud->size() == 1 + 3 * 7);
    for (const std::size_t step : {1U, 9U, 20U, 21U}) {
        const Mix wanted = cloud->mix(step);
        lab->take(wanted);
        lab.update();
        CHECK(lab->outcome->mix == wanted);
        CHECK(lab->outcome->own.score.divergence == doctest::Approx(cloud->point(step).divergence));
    }
    set(lab, {"budget=5.3"});
    const Mix under = lab->outcome->mix;
    CHECK(metric(lab, "bits") <= 5.3);
    lab.act("take_best");
    lab.update();
    CHECK(lab->params.budget == kMostBits);
    CHECK(lab->outcome->mix == under);
    lab->choose(6, false, "bf16");
    lab.update();
    CHECK(lab->outcome->mix.weights[6]->id == "bf16");
    lab->choose(5, true, "int8");
    lab.update();
    for (std::size_t l = 0; l < 7; ++l) {
        if (l != 6) CHECK(lab->outcome->mix.weights[l] == under.weights[l]);
        if (l != 5 && l != 6) CHECK(lab->outcome->mix.activations[l] == under.activations[l]);
    }
    CHECK(lab->outcome->mix.activations[5]->id == "int8");
    set_field(lab.fields(), "w_more=nvfp4,e4m4");
    CHECK_THROWS_WITH_AS(lab.update(), doctest::Contains("unknown format 'e4m4'"), Error);
    set(lab, {"w_more=nvfp4"});
    CHECK(lab->outcome->mix.weights[6]->id == "nvfp4");
}
