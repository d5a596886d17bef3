// What was measured of tensors, so that another scan of the same files neither reads nor casts them again. Used by one
// scan at a time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/inspect/measures.h"
#include "core/scaling/quantizer.h"
#include "core/tensors/tensor_store.h"

namespace fp8lab {

class ScanCache {
  public:
    // The key of a tensor: its file with size and time of change; one of `every` bands was read. A file that was
    // changed is another one.
    struct Entry {
        TensorSummary summary;
        std::vector<std::pair<CastPlan, CastOutcome>> outcomes = {};

        std::optional<CastOutcome> find(const CastPlan& plan) const;
        void keep(const CastPlan& plan, const CastOutcome& outcome);
    };
    // Null: not measured.
    Entry* find(const TensorStore& store, const StoredTensor& tensor, std::size_t every);
    // Keeps the results of up to kMostTensors tensors; the others are measured again.
    static constexpr std::size_t kMostTensors = 20'000;  // of some 4 KB each
    void keep(const TensorStore& store, const StoredTensor& tensor, std::size_t every,
              const TensorSummary& summary);

  private:
    std::map<std::string, Entry> entries_;
};

}  // namespace fp8lab
