// A matrix of the original, and the stored matrix that was made of it, read band by band: as it is, or as a hypothesis
// says.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/inspect/against.h"
#include "core/tensors/tensor_store.h"
#include "core/verify/hypotheses.h"

namespace fp8lab {

// Consecutive rows of a matrix.
struct Band {
    std::size_t first = 0, count = 0;
};

// The rows of an original that a tensor was made of, as one matrix.
class OriginalMatrix {
  public:
    OriginalMatrix(const TensorStore& store, std::vector<RowsOf> parts)
        : store_(&store), parts_(std::move(parts)) {}
    // Throws as TensorStore::read_rows().
    void read(std::size_t first, std::span<float> rows) const;

  private:
    const TensorStore* store_;
    std::vector<RowsOf> parts_;
};

class StoredMatrix {
  public:
    StoredMatrix(const TensorStore& store, const StoredTensor& tensor);

    const StoredTensor& tensor() const { return *tensor_; }
    MatrixShape shape() const { return tensor_->matrix(); }
    const StoredScales* scales() const { return tensor_->scales ? &*tensor_->scales : nullptr; }
    std::optional<GlobalScale> global() const { return scales() ? scales()->global : std::nullopt; }

    // Codes without their scales; of a tensor without scales its values.
    void read_codes(std::size_t first, std::span<float> rows) const;
    void read_values(std::size_t first, std::span<float> rows) const;
    // Scales first, first + 1, ... of the file.
    void read_scales(std::size_t first, std::span<float> values) const;

  private:
    friend class Reader;
    const TensorStore* store_;
    const StoredTensor* tensor_;
    StoredTensor codes_, scales_;  // as tensors of their own; the scales are one column
};

// Reads as a hypothesis says; its order of rows included, but not the transposition of the weight.
class Reader {
  public:
    // `head`: rows of a head, for a rotary order. `amax`: of the original, for GlobalReading::of_amax.
    Reader(const StoredMatrix& matrix, const Hypothesis& hypothesis, std::size_t head, float amax);
    void read(std::size_t first, std::span<float> rows) const;

  private:
    void read_in_order(std::size_t first, std::span<float> rows) const;
    void read_scale_rows(std::size_t first, std::size_t count, std::span<float> values) const;

    const StoredMatrix* matrix_;
    const Hypothesis* hypothesis_;
    std::size_t head_;
    StoredTensor codes_;
    std::optional<GlobalScale> global_;
};

// The rows of scales that rows of the matrix have: the first, and how many.
Band scale_rows_of(const ScaleGrid& grid, const Band& band);

}  // namespace fp8lab
