// Text from a model with a cache: the same as by passes without one, over the window that is stated.
#include "core/trainer/sample.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/rng.h"
#include "core/nn/loss.h"
#include "core/trainer/checkpoint.h"

using namespace fp8lab;

namespace {

std::unique_ptr<Model<float>> model_of_letters(std::uint64_t seed) {
    TrainSpec spec;
    spec.model = "transformer";
    spec.sizes = {{"d", 16},   {"blocks", 2},   {"heads", 2}, {"kv-heads", 1},
                  {"ffn", 24}, {"context", 16}, {"tie", 0}};
    spec.vocabulary = 13;
    auto model = make_model(spec);
    model->initialise(seed);
    Rng rng(seed);  // logits far apart: a difference in the last bits draws the same token
    for (const Parameter<float>& p : model->parameters())
        for (float& v : p.value) v += 0.3F * static_cast<float>(rng.normal());
    return model;
}

}  // namespace

TEST_CASE("the window: all tokens up to the context, then half of it goes each time that it is full") {
    for (const std::size_t context : {8, 9, 64}) {
        const std::size_t step = (context + 1) / 2;
        std::size_t begin = 0;  // as a reader with a cache goes on
        for (std::size_t known = 1; known < 5 * context; ++known) {
            if (known - begin > context) begin += step;
            CAPTURE(known);
            CHECK(window_begin(known, context) == begin);
        }
    }
    CHECK(window_begin(64, 64) == 0);
    CHECK(window_begin(65, 64) == 32);
    CHECK(window_begin(1'000'000, 64) == 999'936);
}

TEST_CASE("each token is drawn from what a pass without a cache says of its window") {
    constexpr std::size_t kContext = 16;
    for (const double temperature : {0.0, 0.6, 1.0})
        for (const std::size_t prompt_length : {1, 16, 50}) {
            CAPTURE(temperature);
            CAPTURE(prompt_length);
            const auto model = model_of_letters(4), reader = model_of_letters(4);
            std::vector<int> text;
            Rng letters(9);
            for (std::size_t i = 0; i < prompt_length; ++i)
                text.push_back(static_cast<int>(letters.below(13)));
            const SampleSettings settings{
                .context = kContext, .count = 60, .temperature = temperature, .seed = 3, .stream = 8};
            const std::vector<int> drawn = sample_tokens(*model, text, settings);
            Rng rng(3, 8);
            NoCasts<float> casts;
            for (const int token : drawn) {
                const auto begin = static_cast<std::ptrdiff_t>(window_begin(text.size(), kContext));
                const std::size_t n = text.size() - static_cast<std::size_t>(begin);
                const Matrix<float>& logits = reader->forward(
                    TokenBatch{.sequences = 1, .context = n, .tokens = {text.begin() + begin, text.end()}},
                    casts);
                const auto row = logits.row(n - 1);
                const double uniform = static_cast<double>(rng.uniform());
                if (temperature == 0) {
                    CHECK(token == std::ranges::max_element(row) - row.begin());
                } else {
                    std::vector<double> p(row.begin(), row.end());
                    for (double& value : p) value /= temperature;
                    softmax<double>(p, p);
                    double below = 0;
                    for (int i = 0; i < token; ++i) below += p[static_cast<std::size_t>(i)];
                    CHECK(uniform >= below - 1e-5);
                    CHECK(uniform < below + p[static_cast<std::size_t>(token)] + 1e-5);
                }
                text.push_back(token);
            }
        }
}

TEST_CASE("a text is drawn with the limits that the SwiGLU of the recipe has") {
    const auto model = model_of_letters(4);
    const auto& specs = model->plan().parameters;
    for (std::size_t i = 0; i < specs.size(); ++i)
        if (specs[i].name.find("gate_up") != std::string::npos)
            for (float& v : model->parameters()[i].value) v *= 20;  // beyond the limits
    const std::vector<int> prompt = {3, 1, 4};
    const auto drawn = [&](const std::string& recipe) {
        ArmCheckpoint file;
        file.recipe = recipe;
        return sample_tokens(*model, prompt, {.context = 16, .count = 30, .swiglu = swiglu_of(file)});
    };
    std::vector<float> limited, free;
    for (const auto& [form, logits] :
         {std::pair{SwigluForm::clamp, &limited}, std::pair{SwigluForm::plain, &free}}) {
        NoCasts<float> casts(form);
        const auto row =
            model->forward(TokenBatch{.sequences = 1, .context = 3, .tokens = prompt}, casts).row(2);
        logits->assign(row.begin(), row.end());
    }
    REQUIRE(limited != free);
    const auto best = [](const std::vector<float>& logits) {
        return static_cast<int>(std::ranges::max_element(logits) - logits.begin());
    };
    const auto first = [&](SwigluForm form) {
        return sample_tokens(*model, prompt, {.context = 16, .count = 1, .temperature = 0, .swiglu = form})
            .front();
    };
    CHECK(first(SwigluForm::clamp) == best(limited));
    CHECK(first(SwigluForm::plain) == best(free));
    CHECK(drawn("bf16:act=clamp") != drawn("bf16"));
    CHECK(drawn("bf16:act=smooth") == drawn("bf16"));  // the same function
    CHECK(drawn("") == drawn("bf16"));                 // a file that does not say its recipe
}

TEST_CASE("a reader is told of each token once, and of the window anew each time that it moves") {
    constexpr std::size_t kContext = 8;
    for (const std::size_t prompt_length : {1, 8, 21}) {
        CAPTURE(prompt_length);
        std::vector<int> text(prompt_length, 3), known;
        std::size_t begin = 0;
        int times_anew = 0;
        const std::vector<float> logits = {0, 1, 0, 0};  // token 1 follows everything
        const auto read = [&](std::span<const int> unread, bool anew) {
            if (anew) known.clear(), begin = window_begin(text.size(), kContext), ++times_anew;
            known.insert(known.end(), unread.begin(), unread.end());
            CHECK(known == std::vector(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end()));
            CHECK(known.size() <= kContext);
            CHECK((anew || unread.size() == 1));
            text.push_back(1);
            return std::span<const float>(logits);
        };
        CHECK(sample_tokens(read, std::vector(text), {.context = kContext, .count = 20, .temperature = 0}) ==
              std::vector(20, 1));
        CHECK(times_anew == (prompt_length == 1 ? 4 : prompt_length == 8 ? 6 : 5));
    }
}
