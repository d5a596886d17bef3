// A checkpoint verified: each tensor against the original that it was made of (diagnosis.h), or, without one, what can be
// seen of it alone: values and scales that are not finite, scales that are 0, subnormal or negative, codes without a scale,
// and what is not read. What `verify` prints, and the Workbench shows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/tensors/tensor_store.h"
#include "core/verify/diagnosis.h"

namespace fp8lab {

struct Verified {
    const StoredTensor* tensor = nullptr;
    ScaleHealth scales = {};
    std::int64_t not_finite = 0;              // of its values; without an original only
    std::optional<Diagnosis> diagnosis = {};  // none: not compared
    // A fault of the diagnosis. Not compared: refused, codes without a scale, NaN or Inf among its values, NaN, Inf or
    // negative ones among its scales. Zero and subnormal scales are said only: a block of zeros may have them.
    bool is_fault() const;
    std::string sentence()
        const;  // "global scale is the reciprocal; 0.092 then", "fine", "scales: 2 NaN, 1 zero"
};

struct VerifyProgress {
    std::size_t done = 0, all = 0;  // tensors
};

struct Verification {
    std::shared_ptr<const TensorStore> model, original = {};
    // Weights by name: all tensors but scales, asides and those that are no floats.
    std::vector<Verified> tensors = {};
    std::vector<std::string> unmatched = {}, unmatched_there = {};  // as Against
    std::size_t faults() const;
    // "24 tensors: 20 fine, 3 with a fault, 1 not compared". Not printable().
    std::string foot() const;
    nlohmann::json json() const;
};

// `original` may be null. `between` is called before each tensor; what it throws ends this. Throws input_error where the original has none of the tensors, and as
// TensorStore::read_rows().
Verification verify(std::shared_ptr<const TensorStore> model, std::shared_ptr<const TensorStore> original,
                    const std::function<void(const VerifyProgress&)>& between = {});

// One tensor of a model against its original; none: it has no counterpart.
class Verifier {
  public:
    Verifier(const TensorStore& model, const TensorStore& original);
    std::optional<Diagnosis> diagnose(const StoredTensor& tensor) const;
    Verified verify(const StoredTensor& tensor) const;  // with its scales; of the model
    const Counterparts& counterparts() const { return counterparts_; }

  private:
    const TensorStore& model_;
    const TensorStore& original_;
    Counterparts counterparts_;
    std::size_t head_dim_ = 0;
};

}  // namespace fp8lab
