// A transformer that the GPU reads token by token (kernels/infer/generator.h) against `infer` on the CPU: weights, inputs and
// cache are rounded in the same places, the residual stream is in FP32 in both.
#include "kernels/infer/generator.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/inference/serve/engine.h"
#include "core/nn/models/transformer/model.h"
#include "core/nn/tokens/corpus.h"
#include "core/trainer/sample.h"
#include "kernels/infer/decode_memory.h"
#include "kernels/infer/pack.h"
#include "kernels/infer/time.h"
#include "tests/kernels/gpu.h"

using namespace fp8lab;
using namespace fp8lab::cuda;

namespace {

constexpr int kContext = 8;

TrainSpec spec_of(int tie = 0, const std::string& recipe = "bf16",
                  std::map<std::string, int, std::less<>> sizes = {
                      {"d", 32}, {"heads", 2}, {"kv-heads", 1}, {"ffn", 48}, {"blocks", 2}}) {
    TrainOptions options;
    options.model = "transformer";
    options.batch = 2;
    options.recipes = recipe;
    options.sizes = std::move(sizes);
    options.sizes["context"] = kContext;
    options.sizes["tie"] = tie;
    return make_train_spec(options);
}

// Random weights that leave the logits apart, and gains that are not 1.
ArmCheckpoint random_weights(const TrainSpec& spec) {
    const auto model = make_model(spec);
    model->initialise(4);
    Rng rng(4);
    ArmCheckpoint out;
    for (const Parameter<float>& p : model->parameters()) {
        std::vector<float>& values = out.parameters.emplace_back().values;
        values.assign(p.value.begin(), p.value.end());
        for (float& v : values) v += 0.1F * static_cast<float>(rng.normal());
    }
    return out;
}

const LowFormat& format_of(ServedWeights weights) {
    return find_low_format(weights == ServedWeights::bf16   ? "bf16"
                           : weights == ServedWeights::e4m3 ? "e4m3"
                                                            : "e4m3-row",
                           "test");
}

// The same model on both sides.
class Both {
  public:
    // calibrated: the scales of an E4M3 cache; else they are 1.
    Both(const TrainSpec& spec, const ArmCheckpoint& checkpoint, const ServedFormats& formats,
         bool calibrated = true) {
        const auto model = std::make_shared<TokenModel>(spec, checkpoint, 1);
        const bool wide = formats.cache == ServedCache::bf16;
        calibrated = calibrated && !wide;
        if (calibrated) amaxes_ = calibrated_cache(*model, 1);
        ServedModel served{.spec = spec, .formats = formats};
        for (const ParameterCheckpoint& p : checkpoint.parameters) served.parameters.emplace_back(p.values);
        for (const auto& [from, to] :
             {std::pair{&amaxes_.k, &served.k_amaxes}, std::pair{&amaxes_.v, &served.v_amaxes}})
            for (const auto& heads : *from) to->insert(to->end(), heads.begin(), heads.end());
        engine = make_generator(served);
        infer_.emplace(model, EngineSpec{.format = &format_of(formats.weights),
                                         .both = formats.weights != ServedWeights::weight_only,
                                         .cache = &find_cache_scheme(wide         ? "bf16"
                                                                     : calibrated ? "head"
                                                                                  : "one",
                                                                     "test"),
                                         .amaxes = calibrated ? &amaxes_ : nullptr});
    }
    // The logits of `infer` behind a token that follows those of `state`.
    std::vector<float> on_cpu(int token, KvState<float>& state) {
        const auto row = infer_->decode({.sequences = 1, .context = 1, .tokens = {token}}, state).row(0);
        return {row.begin(), row.end()};
    }

    std::unique_ptr<TokenEngine> engine;

  private:
    CacheAmaxes amaxes_;
    std::optional<Engine> infer_;
};

double relative(std::span<const float> got, std::span<const float> want) {
    REQUIRE(got.size() == want.size());
    double error = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double e = static_cast<double>(got[i]) - static_cast<double>(want[i]);
        error += e * e, size += static_cast<double>(want[i]) * static_cast<double>(want[i]);
    }
    return std::sqrt(error / size);
}
double length_of(std::span<const float> x) {
    double size = 0;
    for (const float v : x) size += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(size);
}

// Sums have another order on the device. Where a rounding to BF16 or E4M3 goes the other way for that, all that reads it is off
// by `bound` at the most; most tokens meet none and agree to FP32.
constexpr double kToFp32 = 1e-5;
double bound_of(const ServedFormats& formats) {
    const bool narrow = formats.cache == ServedCache::e4m3 || formats.weights == ServedWeights::e4m3 ||
                        formats.weights == ServedWeights::e4m3_row;
    return narrow ? 0.1 : 0.01;
}

using Texts = std::vector<std::vector<int>>;

void check_logits(const TrainSpec& spec, const ArmCheckpoint& weights, const ServedFormats& formats,
                  bool calibrated = true, const Texts& texts = {{7, 1, 30}, {12, 12, 54}, {0, 41, 2}}) {
    CAPTURE(info_of(formats.weights).name);
    CAPTURE(to_string(formats.cache));
    Both both(spec, weights, formats, calibrated);
    int rows = 0, same = 0;
    for (const std::vector<int>& text : texts) {
        KvState<float> state;
        both.engine->forget(0);
        for (const int token : text) {
            const double off = relative(both.engine->read(std::span(&token, 1)), both.on_cpu(token, state));
            CHECK(off <= bound_of(formats));
            ++rows, same += off <= kToFp32;
        }
    }
    CHECK(3 * same >= 2 * rows);
}

TrainSpec shipped_spec() {
    TrainOptions options;
    options.model = "transformer";
    options.sizes = {{"d", 64}, {"heads", 4}, {"ffn", 192}, {"blocks", 4}, {"context", 64}};
    options.recipes = "fp32";
    return make_train_spec(options);
}
ArmCheckpoint shipped_weights() {
    return load_weights("test", FP8LAB_SOURCE "/assets/models/transformer-600.safetensors", shipped_spec());
}

}  // namespace

TEST_CASE("what the device reads has the CPU's logits, in every format") {
    NEEDS_GPU();
    using enum ServedWeights;
    const TrainSpec spec = spec_of(), tied = spec_of(1);
    const ArmCheckpoint weights = random_weights(spec), of_tied = random_weights(tied);
    check_logits(tied, of_tied, {bf16, ServedCache::bf16});
    check_logits(spec, weights, {weight_only, ServedCache::bf16});
    check_logits(spec, weights, {e4m3_row, ServedCache::bf16});
    check_logits(tied, of_tied, {e4m3, ServedCache::e4m3});
    check_logits(spec, weights, {bf16, ServedCache::e4m3}, false);
    check_logits(shipped_spec(), shipped_weights(), {e4m3, ServedCache::e4m3}, true, {{7, 1, 30}});
}

TEST_CASE("the first logits of the shipped transformer are those of infer") {
    NEEDS_GPU();
    for (const ServedWeightsInfo& weights : served_weights()) {
        CAPTURE(weights.name);
        const bool narrow = weights.id == ServedWeights::e4m3 || weights.id == ServedWeights::e4m3_row;
        Both both(shipped_spec(), shipped_weights(), {weights.id});
        double worst = 0;
        for (const int token : encode(corpus_of(""), "agi nt")) {
            KvState<float> state;
            both.engine->forget(0);
            const std::vector<float> want = both.on_cpu(token, state);
            worst = std::max(worst, relative(both.engine->read(std::span(&token, 1)), want));
        }
        MESSAGE("logits of the device against infer, ", weights.name, ": off by ", worst);
        CHECK(worst <= (narrow ? 2e-2 : 1e-3));
    }
}

TEST_CASE("the greedy text of the device is the CPU's, beyond the context too") {
    NEEDS_GPU();
    const TrainSpec spec = spec_of();
    constexpr int kCount = 10;
    for (const ServedFormats& formats : {ServedFormats{}, ServedFormats{ServedWeights::weight_only}}) {
        Both both(spec, random_weights(spec), formats);
        KvState<float> state;
        int compared = 0;
        std::vector<float> want;
        const auto read = [&](std::span<const int> unread, bool anew) {
            if (anew) both.engine->forget(0), state.length = 0;
            for (const int token : unread) want = both.on_cpu(token, state);
            const std::span<const float> got = both.engine->read(unread);
            CHECK(both.engine->length() == state.length);
            const double error = bound_of(formats) * length_of(want);
            CHECK(relative(got, want) <= bound_of(formats));
            std::vector<float> sorted = want;
            std::ranges::sort(sorted, std::greater());
            if (static_cast<double>(sorted[0] - sorted[1]) > 2 * error) {
                CHECK(std::ranges::max_element(got) - got.begin() ==
                      std::ranges::max_element(want) - want.begin());
                ++compared;
            }
            return got;
        };
        CHECK(sample_tokens(read, std::vector{7, 1, 30, 12, 12},
                            {.context = kContext, .count = kCount, .temperature = 0})
                  .size() == kCount);
        CHECK(compared >= kCount / 2);
    }
}

TEST_CASE("a token's logits do not depend on the parts in which the text comes") {
    NEEDS_GPU();
    const TrainSpec spec = spec_of();
    const auto engine = std::move(Both(spec, random_weights(spec), {}).engine);
    const std::vector<int> text = {7, 1, 30, 12, 12};
    const auto read = [&](std::span<const int> tokens) {
        const std::span<const float> logits = engine->read(tokens);
        return std::vector(logits.begin(), logits.end());
    };
    const std::vector<float> whole = read(text);
    engine->forget(0);
    std::vector<float> last;
    for (const int token : text) last = read(std::span(&token, 1));
    CHECK(last == whole);
    engine->forget(2);  // what was behind them is overwritten
    CHECK(read(std::vector{5, 6}) != whole);
    engine->forget(2);
    CHECK(read(std::span(text).subspan(2)) == whole);
}

TEST_CASE("packed weights are the values that infer computes with, row for row") {
    Rng rng(3);
    for (const auto& [format, low] :
         {std::pair{ServedWeights::bf16, "bf16"}, std::pair{ServedWeights::e4m3, "e4m3"},
          std::pair{ServedWeights::e4m3_row, "e4m3-row"}, std::pair{ServedWeights::weight_only, "e4m3-row"}})
        for (const bool gate_up : {false, true}) {
            CAPTURE(info_of(format).name);
            Matrix<float> w(22, 48);
            for (float& v : w.values) v = static_cast<float>(rng.normal());
            DecodeModel model;
            model.batch = 1, model.d = 48, model.heads = model.kv_heads = 2, model.head_size = 24,
            model.ffn = 48;
            for (DecodeMatrix& m : model.matrix) m.rows = 22, m.cols = 48;
            plan_decode(model, decode_weights({format}), {1, 227 << 10});
            const DecodeMatrix& m = model.matrix[kGateUp];
            const PackedMatrix got = packed(m, w.values, format, gate_up);
            REQUIRE(got.scales.size() == w.rows);
            const Matrix<float> want = lowered_weights(w, find_low_format(low, "test"));
            int wrong = 0;
            for (int r = 0; r < m.rows; ++r)
                for (int c = 0; c < m.cols; ++c) {
                    const auto from = static_cast<std::size_t>(gate_up ? r % 2 * 11 + r / 2 : r);
                    float value = 0;
                    if (format == ServedWeights::bf16) {
                        std::uint16_t word = 0;
                        std::memcpy(&word, got.bytes.data() + piece_at(m, r, 2 * c), 2);
                        value = decode(find_format("bf16"), word);
                    } else {
                        value = decode(find_format("e4m3"), got.bytes[piece_at(m, r, c)]);
                    }
                    wrong += value * got.scales[static_cast<std::size_t>(r)] !=
                             want.row(from)[static_cast<std::size_t>(c)];
                }
            CHECK(wrong == 0);
        }
}

TEST_CASE("what the device cannot read is refused in a sentence") {
    NEEDS_GPU();
    const auto refusal = [](const auto& call) {
        try {
            call();
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::usage);
            return std::string(error.what());
        }
        return std::string();
    };
    const auto of_sizes = [&](int d, ServedWeights weights, const std::string& recipe = "bf16") {
        const TrainSpec spec = spec_of(0, recipe, {{"d", d}, {"heads", 1}, {"ffn", 16}, {"blocks", 1}});
        const ArmCheckpoint checkpoint = random_weights(spec);
        return refusal([&] { Both(spec, checkpoint, {weights}); });
    };
    CHECK(of_sizes(136, ServedWeights::bf16).find("a head of 136 is not a multiple of 8 up to 128") !=
          std::string::npos);
    CHECK(of_sizes(24, ServedWeights::e4m3).find("rows of 24 values are not a multiple of 16") !=
          std::string::npos);
    CHECK(of_sizes(24, ServedWeights::bf16).empty());
    CHECK(of_sizes(32, ServedWeights::bf16, "bf16:act=clamp").find("act=clamp") != std::string::npos);
    CHECK(of_sizes(32, ServedWeights::bf16, "bf16:act=smooth").empty());
    CHECK(refusal([] { make_generator({.spec = {}}); }).find("this is model mlp") != std::string::npos);

    const TrainSpec spec = spec_of();
    const auto engine = std::move(Both(spec, random_weights(spec), {}).engine);
    const auto read = [&](std::vector<int> tokens) { return refusal([&] { engine->read(tokens); }); };
    CHECK(read({}).find("there is none to read") != std::string::npos);
    CHECK(read({3, 55}).find("55 is not in 0..54") != std::string::npos);
    CHECK(read(std::vector(kContext + 1, 3)).find(fmt::format("{} more are too many", kContext + 1)) !=
          std::string::npos);
    CHECK(refusal([&] { engine->forget(1); }).find("cannot go back to 1") != std::string::npos);
    CHECK(engine->length() == 0);

    InferCase of = {.batch = 9, .formats = {ServedWeights::weight_only}};
    CHECK(refusal([&] { time_infer(of, 1); }).find("is for one token of up to 8 sequences") !=
          std::string::npos);
    of = {.batch = 257};
    CHECK(refusal([&] { time_infer(of, 1); }).find("256") != std::string::npos);
}
