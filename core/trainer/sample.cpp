#include "core/trainer/sample.h"

#include <algorithm>

#include "core/base/rng.h"
#include "core/nn/loss.h"
#include "core/nn/streams.h"

namespace fp8lab {
namespace {

int draw(std::span<const float> logits, double temperature, double uniform) {
    if (temperature == 0) return static_cast<int>(std::ranges::max_element(logits) - logits.begin());
    std::vector<double> p(logits.begin(), logits.end());
    for (double& value : p) value /= temperature;
    softmax<double>(p, p);
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        sum += p[i];
        if (uniform < sum) return static_cast<int>(i);
    }
    return static_cast<int>(p.size()) - 1;
}

std::string as_text(std::span<const int> codes, const std::string& symbols) {
    std::string text;
    for (const int code : codes) text += symbols[static_cast<std::size_t>(code)];
    return text;
}

}  // namespace

std::size_t window_begin(std::size_t known, std::size_t context) {
    const std::size_t step = (context + 1) / 2;
    return known <= context ? 0 : (known - context + step - 1) / step * step;
}

std::vector<int> sample_tokens(const ReadTokens& read, std::span<const int> prompt,
                               const SampleSettings& settings) {
    std::vector<int> text(prompt.begin(), prompt.end());
    Rng rng(settings.seed, settings.stream);
    std::size_t begin = window_begin(text.size(), settings.context), known = 0;
    for (int n = 0; n < settings.count; ++n) {
        const std::size_t now = window_begin(text.size(), settings.context);
        if (now != begin) known = 0, begin = now;
        const std::span<const int> unread = std::span(text).subspan(begin + known);
        const bool anew = known == 0;
        known += unread.size();
        text.push_back(draw(read(unread, anew), settings.temperature, static_cast<double>(rng.uniform())));
        if (settings.each) settings.each(text.back());
    }
    return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

std::vector<int> sample_tokens(Model<float>& model, std::span<const int> prompt,
                               const SampleSettings& settings) {
    NoCasts<float> casts(settings.swiglu);
    KvState<float> state;
    const auto read = [&](std::span<const int> unread, bool anew) -> std::span<const float> {
        if (anew) state.length = 0;
        const TokenBatch batch{
            .sequences = 1, .context = unread.size(), .tokens = {unread.begin(), unread.end()}};
        return model.decode(batch, casts, state).row(batch.context - 1);
    };
    return sample_tokens(read, prompt, settings);
}

void add_sample(Evaluation& now, Model<float>& model, const Task& task, const TrainSpec& spec,
                const Recipe& recipe) {
    const std::vector<int> prompt = task.prompt(), expected = task.expected();
    if (prompt.empty()) return;
    const std::string symbols = task.symbols();
    const SampleSettings settings{
        .context = static_cast<std::size_t>(spec.sizes.at("context")),
        .count = expected.empty() ? kSampleLength : static_cast<int>(expected.size()),
        .temperature = expected.empty() ? kTemperature : 0,
        .seed = spec.seed,
        .stream = stream(Draw::sample, 0, now.step),
        .swiglu = recipe.act};
    now.text_step = now.step;
    now.prompt = as_text(prompt, symbols);
    now.continuation = as_text(sample_tokens(model, prompt, settings), symbols);
    now.expected = as_text(expected, symbols);
}

}  // namespace fp8lab
