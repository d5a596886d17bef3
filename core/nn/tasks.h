// The tasks and their batches. A batch depends only on the seed and the step, so every arm gets the same
// batches and a resumed run continues with the right one. Definitions: cli.md, "Definitions that results
// depend on".
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/nn/matrix.h"
#include "core/nn/tokens/token_batch.h"
#include "core/nn/train_spec.h"

namespace fp8lab {

struct DenseBatch {
    Matrix<float> x, y;  // (batch, d0), (batch, dn)
};
using Batch = std::variant<DenseBatch, TokenBatch>;

inline constexpr std::size_t kHeldOutSequences =
    8;  // of a held-out batch, whatever the batch is: losses can be compared

class Task {
  public:
    virtual ~Task() = default;
    virtual void draw(int step, Batch& batch) = 0;  // reuses the batch's memory
    // Batch i of data that is not trained on, the same for every seed. False: the task has none.
    virtual bool held_out(int, Batch&) const { return false; }
    // Tasks of tokens: one character per token, and what a sample starts with. Empty: tokens that are no characters,
    // of which no sample is written.
    virtual std::string symbols() const { return {}; }
    virtual std::vector<int> prompt() const { return {}; }
    virtual int rarest() const { return 0; }  // the token that the training data have least often
    virtual std::vector<int> expected() const { return {}; }  // the only right continuation, if there is one
};

// Throws input_error for npy and text files, as load_npy_data() and load_corpus().
std::unique_ptr<Task> make_task(const TrainSpec& spec);

// The whole data set of `spiral`: arm 0 in the even rows, arm 1 in the odd rows, y one-hot. Point k of an arm
// has t = (k + 0.5) / 1024, radius 0.95 t, angle 3 pi t (1.5 turns; arm 1 is turned by pi), N(0, 0.02^2)
// jitter.
inline constexpr int kSpiralPoints = 2048;
DenseBatch spiral_points(std::uint64_t seed);

// `npy:X,Y`: X.rows samples. Throws input_error: unreadable, not two-dimensional, empty, different numbers of
// rows, non-finite values with row and column.
DenseBatch load_npy_data(const std::string& x_path, const std::string& y_path);
bool is_one_hot(const Matrix<float>& y);  // two columns or more; every row one 1, the rest 0

// The fixed function of `teacher`, x (batch, d0) -> y (batch, dn): y = w2 tanh(w1 x), w1 (64, d0) ~ N(0, 2.25
// / d0), w2 (dn, 64) ~ N(0, 1 / 64), drawn with a fixed seed, so that all runs learn the same function.
class Teacher {
  public:
    Teacher(int inputs, int outputs);
    void answer(const Matrix<float>& x, Matrix<float>& y);

  private:
    Matrix<float> w1_, w2_, hidden_, slope_;
};

}  // namespace fp8lab
