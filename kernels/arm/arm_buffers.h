// The memory of an arm, taken from the list of its allocations (core/nn/memory_plan.h).
#pragma once

#include <utility>

#include "core/nn/memory_plan.h"
#include "kernels/device/device.h"

namespace fp8lab::cuda {

class ArmBuffers {
  public:
    explicit ArmBuffers(ArmMemory list) : list_(std::move(list)), pool_(list_.pool_bytes()) {}

    const ArmMemory& list() const { return list_; }
    bool has(ArmPart part, int layer = 0, TensorClass tensor = TensorClass::x) const {
        return list_.find(part, layer, tensor) != nullptr;
    }
    // Empty where the list has none. Zeros, or a part of the pool with whatever it has; the pool lives as long as this.
    Memory take(ArmPart part, int layer = 0, TensorClass tensor = TensorClass::x) const {
        const Allocation* const found = list_.find(part, layer, tensor);
        if (!found) return {};
        if (!found->life.always()) return {pool_, found->offset, found->bytes};
        Memory memory(found->bytes);
        fill_zeros(memory.get(), memory.bytes());
        return memory;
    }
    template <class T>
    Buffer<T> buffer(ArmPart part, int layer = 0, TensorClass tensor = TensorClass::x) const {
        return Buffer<T>(take(part, layer, tensor));
    }

  private:
    ArmMemory list_;
    Memory pool_;
};

}  // namespace fp8lab::cuda
