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
#include <string_view>
#include <vector>

#include "core/tensors/tensor_store.h"
#include "core/verify/diagnosis.h"

namespace fp8lab {

// not_read: the program does not know the layout. not_compared: the original has the values in another order. Neither is a
// fault, and neither was verified.
enum class VerifiedAs { fine, fault, not_read, not_compared };
std::string_view to_string(VerifiedAs verdict);  // "fine", "fault", "not read", "not compared"

struct Verified {
    const StoredTensor* tensor = nullptr;  // of the model; of the original where the model does not have it
    ScaleHealth scales = {};
    std::int64_t not_finite = 0;              // of its values; without an original only
    std::int64_t under_zero = 0;              // codes that are not 0 and become 0: their scale is
    std::optional<Diagnosis> diagnosis = {};  // none: not compared
    std::string apart = {};    // why it has no counterpart; empty: it has, or none is asked for
    bool other_order = false;  // `apart`: Counterpart::other_order

    // A fault: that of the diagnosis; no counterpart; negative scales; codes that become 0 under a scale of 0; codes and
    // scales that contradict each other (StoredTensor::is_broken). Without a diagnosis also codes without a scale, NaN or
    // Inf among values or scales. Scales of 0 above zeros and subnormal ones are said only.
    VerifiedAs verdict() const;
    bool is_fault() const { return verdict() == VerifiedAs::fault; }
    // "global scale is the reciprocal; relative L2 0.092 then", "fine; relative L2 0.0262", "not in the original"; without an
    // original "nothing wrong found", "among its scales: 2 NaN, 1 zero".
    std::string sentence() const;
};

struct VerifyProgress {
    std::size_t done = 0, all = 0;  // tensors
};

struct Verification {
    std::shared_ptr<const TensorStore> model, original = {};
    // Weights by name; then those of the original that are not in the model.
    std::vector<Verified> tensors = {};
    std::size_t count(VerifiedAs verdict) const;
    std::size_t faults() const { return count(VerifiedAs::fault); }
    // "24 tensors: 20 fine, 3 with a fault, 1 not read". Not printable().
    std::string foot() const;
    nlohmann::json json() const;
};

// `original` may be null. `between` is called before each tensor; what it throws ends this. Throws input_error where the
// original has none of the tensors, and as TensorStore::read_rows().
Verification verify(std::shared_ptr<const TensorStore> model, std::shared_ptr<const TensorStore> original,
                    const std::function<void(const VerifyProgress&)>& between = {});

// What is verified: all tensors but scales, asides and those that are no floats.
bool is_weight(const StoredTensor& tensor);

// The tensors of a model against its original, one at a time. Both stores must outlive it.
class Verifier {
  public:
    Verifier(const TensorStore& model, const TensorStore& original);
    // None: it has no counterpart.
    std::optional<Diagnosis> diagnose(const StoredTensor& tensor) const;
    Verified verify(const StoredTensor& tensor) const;  // a weight of the model
    const Counterparts& counterparts() const { return counterparts_; }
    bool shares_names() const { return shares_names_; }  // a weight of the model is in the original, by name
    const std::vector<Verified>& missing() const { return missing_; }  // in the original, not in the model

  private:
    const TensorStore& model_;
    const TensorStore& original_;
    Counterparts counterparts_;
    std::size_t head_dim_ = 0;
    bool shares_names_ = false;
    std::vector<Verified> missing_ = {};
};

}  // namespace fp8lab
