#include "kernels/arm/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/base/error.h"

namespace fp8lab::cuda {
namespace {

// Values one after the other. Both ends are the same build of this program.
class Writer {
  public:
    template <class T>
    void put(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    template <class T>
    void put_all(const std::vector<T>& values) {
        put(values.size());
        for (const T& value : values) put(value);
    }
    std::string bytes;
};

class Reader {
  public:
    explicit Reader(const std::string& bytes) : bytes_(bytes) {}
    template <class T>
    T get() {
        T value{};
        if (at_ + sizeof value > bytes_.size())
            throw Error(ErrorKind::failed, "ranks", "a rank has sent less than its record");
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    template <class T>
    std::vector<T> get_all() {
        std::vector<T> values(get<std::size_t>());
        for (T& value : values) value = get<T>();
        return values;
    }

  private:
    const std::string& bytes_;
    std::size_t at_ = 0;
};

}  // namespace

RankRecords records_of_all(const RankPlace& place, const ArmRecord& own, double ms) {
    Writer writer;
    writer.put(own.result);
    writer.put_all(own.tensors);
    writer.put(ms);
    RankRecords out;
    for (const std::string& bytes : place.link->all_gather(
             std::move(writer.bytes), fmt::format("the records of step {}", own.result.step))) {
        Reader reader(bytes);
        ArmRecord& one = out.of.emplace_back();
        one.result = reader.get<StepResult>();
        one.tensors = reader.get_all<TensorResult>();
        out.ms = std::max(out.ms, reader.get<double>());
    }
    return out;
}

std::vector<ScaleCheckpoint> scales_of_all(const RankPlace& place, std::vector<ScaleCheckpoint> own) {
    if (!place.several()) return own;
    Writer writer;
    writer.put(own.size());
    for (const ScaleCheckpoint& scale : own) {
        writer.put(scale.id);
        writer.put(scale.scale);
        writer.put(scale.scale_age);
        writer.put_all(scale.history);
        writer.put(scale.gemm ? static_cast<int>(*scale.gemm) : -1);
    }
    const auto all = place.link->all_gather(std::move(writer.bytes), "the scales of a checkpoint");
    own.clear();
    for (int rank = 0; rank < place.count; ++rank) {
        Reader reader(all[static_cast<std::size_t>(rank)]);
        for (auto left = reader.get<std::size_t>(); left > 0; --left) {
            ScaleCheckpoint& scale = own.emplace_back();
            scale.id = reader.get<TensorId>();
            scale.scale = reader.get<float>();
            scale.scale_age = reader.get<int>();
            scale.history = reader.get_all<float>();
            if (const int gemm = reader.get<int>(); gemm >= 0) scale.gemm = static_cast<Gemm>(gemm);
            scale.rank = rank;
        }
    }
    return own;
}

std::vector<ScaleCheckpoint> scales_of_rank(const RankPlace& place, const std::vector<ScaleCheckpoint>& all) {
    std::vector<ScaleCheckpoint> out;
    std::ranges::copy_if(all, std::back_inserter(out), [&](const ScaleCheckpoint& scale) {
        return !scale.rank || *scale.rank == place.rank;
    });
    return out;
}

}  // namespace fp8lab::cuda
