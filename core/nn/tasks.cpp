#include "core/nn/tasks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/ops/activation.h"
#include "core/nn/pictures/digits.h"
#include "core/nn/streams.h"
#include "core/nn/tokens/token_tasks.h"
#include "core/tensors/npy.h"

namespace fp8lab {
namespace {

Matrix<float> normal_matrix(int rows, int cols, double variance, std::uint64_t seed,
                            std::uint64_t stream_id) {
    Matrix<float> m(static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
    Rng(seed, stream_id).fill_normal(m.values, static_cast<float>(std::sqrt(variance)));
    return m;
}

// Its memory is used again.
DenseBatch& dense(Batch& batch) {
    if (!std::holds_alternative<DenseBatch>(batch)) batch = DenseBatch{};
    return std::get<DenseBatch>(batch);
}

std::size_t context_of(const TrainSpec& spec) { return static_cast<std::size_t>(spec.sizes.at("context")); }

class TeacherTask final : public Task {
  public:
    explicit TeacherTask(const TrainSpec& spec)
        : seed_(spec.seed),
          batch_(spec.batch),
          inputs_(spec.layers.front()),
          teacher_(inputs_, spec.layers.back()) {}
    void draw(int step, Batch& into) override {
        DenseBatch& batch = dense(into);
        batch.x.resize(static_cast<std::size_t>(batch_), static_cast<std::size_t>(inputs_));
        Rng(seed_, stream(Draw::batch, 0, step)).fill_normal(batch.x.values);
        teacher_.answer(batch.x, batch.y);
    }

  private:
    std::uint64_t seed_;
    int batch_, inputs_;
    Teacher teacher_;
};

class NoiseTask final : public Task {
  public:
    explicit NoiseTask(const TrainSpec& spec)
        : data_{normal_matrix(spec.batch, spec.layers.front(), 1, spec.seed, stream(Draw::data, 0)),
                normal_matrix(spec.batch, spec.layers.back(), 1, spec.seed, stream(Draw::data, 1))} {}
    void draw(int, Batch& batch) override { batch = data_; }

  private:
    DenseBatch data_;
};

// Minibatches drawn with replacement from a data set.
class DataTask final : public Task {
  public:
    DataTask(const TrainSpec& spec, DenseBatch data)
        : seed_(spec.seed), batch_(static_cast<std::size_t>(spec.batch)), data_(std::move(data)) {}
    void draw(int step, Batch& into) override {
        DenseBatch& batch = dense(into);
        batch.x.resize(batch_, data_.x.cols);
        batch.y.resize(batch_, data_.y.cols);
        Rng rng(seed_, stream(Draw::batch, 0, step));
        for (std::size_t r = 0; r < batch_; ++r) {
            const std::size_t sample = rng.below(static_cast<std::uint32_t>(data_.x.rows));
            std::ranges::copy(std::as_const(data_.x).row(sample), batch.x.row(r).begin());
            std::ranges::copy(std::as_const(data_.y).row(sample), batch.y.row(r).begin());
        }
    }

  private:
    std::uint64_t seed_;
    std::size_t batch_;
    DenseBatch data_;
};

TokenBatch& tokens(Batch& batch) {
    if (!std::holds_alternative<TokenBatch>(batch)) batch = TokenBatch{};
    return std::get<TokenBatch>(batch);
}

class TextTask final : public Task {
  public:
    explicit TextTask(const TrainSpec& spec)
        : corpus_(corpus_of(spec.text_path)),
          sequences_(corpus_, spec.seed, static_cast<std::size_t>(spec.batch), context_of(spec)),
          held_out_(corpus_, spec.seed, kHeldOutSequences, context_of(spec)) {}
    void draw(int step, Batch& batch) override { sequences_.draw(step, tokens(batch)); }
    bool held_out(int i, Batch& batch) const override {
        held_out_.held_out(i, tokens(batch));
        return true;
    }
    std::string symbols() const override { return corpus_.symbols; }
    int rarest() const override {
        std::vector<std::ptrdiff_t> counts;
        for (std::size_t s = 0; s < corpus_.symbols.size(); ++s)
            counts.push_back(std::count(corpus_.codes.begin(),
                                        corpus_.codes.begin() + static_cast<std::ptrdiff_t>(corpus_.train),
                                        static_cast<int>(s)));
        for (std::ptrdiff_t& count : counts)  // only in the held-out part: never trained
            if (count == 0) count = std::numeric_limits<std::ptrdiff_t>::max();
        return static_cast<int>(std::ranges::min_element(counts) - counts.begin());
    }
    // What the corpus has of it, at least one character.
    std::vector<int> prompt() const override {
        std::vector<int> codes;
        for (const char c : std::string_view("a gradient "))
            if (const auto at = corpus_.symbols.find(c); at != std::string::npos)
                codes.push_back(static_cast<int>(at));
        if (codes.empty()) codes.push_back(corpus_.codes.front());
        return codes;
    }

  private:
    Corpus corpus_;
    TextSequences sequences_, held_out_;
};

class CopyingTask final : public Task {
  public:
    explicit CopyingTask(const TrainSpec& spec)
        : sequences_(spec.seed, static_cast<std::size_t>(spec.batch), context_of(spec)),
          one_(spec.seed, 1, context_of(spec)) {}
    void draw(int step, Batch& batch) override { sequences_.draw(step, tokens(batch)); }
    bool held_out(int i, Batch& batch) const override {
        sequences_.held_out(i, tokens(batch));
        return true;
    }
    std::string symbols() const override { return "abcdefghijklmnop"; }
    std::vector<int> prompt() const override {  // up to where the answer is in the context
        const TokenBatch batch = sample();
        const auto period = std::ranges::find(batch.scored, 1) - batch.scored.begin();
        return {batch.tokens.begin(), batch.tokens.begin() + period + 1};
    }
    std::vector<int> expected() const override {
        const TokenBatch batch = sample();
        return {batch.tokens.begin() + static_cast<std::ptrdiff_t>(prompt().size()), batch.tokens.end()};
    }

  private:
    TokenBatch sample() const {
        TokenBatch batch;
        one_.held_out(0, batch);
        return batch;
    }
    CopyingSequences sequences_, one_;
};

class ZipfTask final : public Task {
  public:
    explicit ZipfTask(const TrainSpec& spec)
        : sequences_(spec.vocabulary, spec.seed, static_cast<std::size_t>(spec.batch), context_of(spec)),
          held_out_(spec.vocabulary, spec.seed, kHeldOutSequences, context_of(spec)) {}
    void draw(int step, Batch& batch) override { sequences_.draw(step, tokens(batch)); }
    bool held_out(int i, Batch& batch) const override {
        held_out_.held_out(i, tokens(batch));
        return true;
    }
    int rarest() const override { return sequences_.vocabulary() - 1; }

  private:
    ZipfSequences sequences_, held_out_;
};

Matrix<float> load_matrix(const std::string& path) {
    NpyArray array = read_npy(path);
    if (array.shape.size() != 2 || array.values.empty())
        throw input_error(path, "must be two-dimensional (samples, columns) and not empty");
    Matrix<float> m;
    m.rows = array.shape[0];
    m.cols = array.shape[1];
    m.values = std::move(array.values);
    const auto bad = std::ranges::find_if_not(m.values, [](float v) { return std::isfinite(v); });
    if (bad != m.values.end()) {
        const auto i = static_cast<std::size_t>(bad - m.values.begin());
        throw input_error(path, "row " + std::to_string(i / m.cols) + ", column " +
                                    std::to_string(i % m.cols) +
                                    " is not finite (rows and columns count from 0)");
    }
    return m;
}

}  // namespace

Teacher::Teacher(int inputs, int outputs) {
    constexpr std::uint64_t kTeacherSeed = 0x7EAC4E5;  // any fixed number
    constexpr int kHidden = 64;
    w1_ = normal_matrix(kHidden, inputs, 2.25 / inputs, kTeacherSeed, stream(Draw::teacher_in));
    w2_ = normal_matrix(outputs, kHidden, 1.0 / kHidden, kTeacherSeed, stream(Draw::teacher_out));
}

void Teacher::answer(const Matrix<float>& x, Matrix<float>& y) {
    multiply_nt(x, w1_, hidden_);
    slope_.resize(hidden_.rows, hidden_.cols);
    activate<float>(Activation::tanh, hidden_.values, hidden_.values, slope_.values);
    multiply_nt(hidden_, w2_, y);
}

DenseBatch spiral_points(std::uint64_t seed) {
    DenseBatch data{Matrix<float>(kSpiralPoints, 2), Matrix<float>(kSpiralPoints, 2)};
    Rng rng(seed, stream(Draw::data));
    for (std::size_t i = 0; i < kSpiralPoints; ++i) {
        constexpr double kRadius = 0.95, kJitter = 0.02,
                         kTurns = 1.5;  // radius + jitter stays inside [-1, 1]
        const std::size_t arm = i % 2;
        const double t = (static_cast<double>(i / 2) + 0.5) / (kSpiralPoints / 2);
        const double angle = std::numbers::pi * (2 * kTurns * t + static_cast<double>(arm));
        data.x.row(i)[0] =
            static_cast<float>(kRadius * t * std::cos(angle) + kJitter * static_cast<double>(rng.normal()));
        data.x.row(i)[1] =
            static_cast<float>(kRadius * t * std::sin(angle) + kJitter * static_cast<double>(rng.normal()));
        data.y.row(i)[arm] = 1;
    }
    return data;
}

DenseBatch load_npy_data(const std::string& x_path, const std::string& y_path) {
    DenseBatch data{load_matrix(x_path), load_matrix(y_path)};
    if (data.x.rows != data.y.rows)
        throw input_error(y_path, "has " + std::to_string(data.y.rows) + " rows, " + x_path + " has " +
                                      std::to_string(data.x.rows));
    return data;
}

bool is_one_hot(const Matrix<float>& y) {
    if (y.cols < 2) return false;
    for (std::size_t r = 0; r < y.rows; ++r) {
        const auto row = y.row(r);
        const auto ones = std::ranges::count(row, 1.0F), zeros = std::ranges::count(row, 0.0F);
        if (ones != 1 || zeros + 1 != static_cast<std::ptrdiff_t>(y.cols)) return false;
    }
    return true;
}

std::unique_ptr<Task> make_task(const TrainSpec& spec) {
    switch (spec.task) {
        case TaskKind::teacher:
            return std::make_unique<TeacherTask>(spec);
        case TaskKind::noise:
            return std::make_unique<NoiseTask>(spec);
        case TaskKind::spiral:
            return std::make_unique<DataTask>(spec, spiral_points(spec.seed));
        case TaskKind::digits:
            return std::make_unique<DataTask>(spec, digit_data().train);
        case TaskKind::text:
            return std::make_unique<TextTask>(spec);
        case TaskKind::copying:
            return std::make_unique<CopyingTask>(spec);
        case TaskKind::zipf:
            return std::make_unique<ZipfTask>(spec);
        case TaskKind::npy:
            return std::make_unique<DataTask>(spec, load_npy_data(spec.x_path, spec.y_path));
    }
    throw usage_error("--task", "unknown task");
}

}  // namespace fp8lab
