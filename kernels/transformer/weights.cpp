#include "kernels/transformer/weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "kernels/arm/slot.h"
#include "kernels/layers/launch.h"

namespace fp8lab::cuda {
namespace {

std::size_t size(int n) { return static_cast<std::size_t>(n); }
bool finite(const std::vector<float>& values) {
    return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}
void upload(std::vector<float> values, Buffer<float>& to) {
    if (to.size() == 0) return;
    values.resize(to.size(), 0.0F);
    to.upload(values);
}
std::vector<float> download(const Buffer<float>& from, int count) {
    std::vector<float> values = from.download();
    values.resize(std::min(values.size(), size(count)));
    return values;
}

}  // namespace

WeightList::WeightList(const ModelPlan& plan, const WeightTypes& types, const ArmBuffers& memory,
                       const RankPlace& place, const Blocks& blocks)
    : bucket_(memory.take(ArmPart::bucket)) {
    int number = 0;
    for (const ParameterSpec& spec : plan.parameters) {
        ++number;
        Entry entry{.read_by_gemm = spec.operand.has_value(), .matrix = nullptr, .vector = nullptr};
        const int count = static_cast<int>(spec.shape.back());
        if (spec.shape.size() == 2) {
            auto p = std::make_unique<MatrixParameter>();
            p->name = spec.name;
            p->shape = shape_of(static_cast<int>(spec.shape.front()), count);
            p->in_bucket = place.several() && !plan.only_gemms_read(spec);
            if (plan.only_gemms_read(spec)) p->block = blocks(spec, number);
            // The embedding is not read by a GEMM unless the head is tied to it; it is gathered in FP32.
            const Element kept = entry.read_by_gemm && spec.name != "embedding" ? types.kept : Element::f32,
                          gradient = kept == Element::f32 && spec.name == "embedding" ? Element::f32
                                                                                      : types.gradient;
            const auto of = [&](ArmPart part, Element element) {
                return Parameters(element, p->block ? p->block->shape : p->shape, memory.take(part, number));
            };
            p->master = of(ArmPart::master, kept);
            p->gradient = Parameters(gradient, p->shape,
                                     p->in_bucket ? bucket_part(elements(p->shape))
                                                  : memory.take(ArmPart::weight_gradient, number));
            p->sent_gradient = memory.take(ArmPart::sent_gradient, number);
            p->m = of(ArmPart::m, entry.read_by_gemm ? types.m : Element::f32);
            p->v = of(ArmPart::v, entry.read_by_gemm ? types.v : Element::f32);
            entry.matrix = std::move(p);
        } else {
            auto p = std::make_unique<VectorParameter>();
            p->name = spec.name;
            p->count = count;
            const auto of = [&](ArmPart part) { return memory.buffer<float>(part, number); };
            p->value = of(ArmPart::bias);
            p->gradient = of(ArmPart::bias_gradient);
            p->before = of(ArmPart::bias_before);
            p->m = of(ArmPart::bias_m);
            p->v = of(ArmPart::bias_v);
            p->partials = of(ArmPart::bias_partials);
            if (place.several()) p->summed = static_cast<float*>(bucket_part(size(padded(count))).get());
            entry.vector = std::move(p);
        }
        entries_.push_back(std::move(entry));
    }
    place_partials(place);
}

Memory WeightList::bucket_part(std::size_t count) {
    const std::size_t at = std::exchange(bucket_used_, bucket_used_ + count);
    return {bucket_, at * sizeof(float), count * sizeof(float)};
}

void WeightList::place_partials(const RankPlace& place) {
    const auto partials = [](std::size_t count) {
        return size(cuda::square_partials(static_cast<long long>(count)));
    };
    for (MatrixParameter* p : matrices())
        if (p->block)
            p->partials_at =
                std::exchange(partials_of_blocks_, partials_of_blocks_ + partials(p->block->elements()));
    std::size_t next = partials_of_blocks_ * size(place.count);
    for (Entry& entry : entries_) {
        MatrixParameter* const p = entry.matrix.get();
        if (p && p->block)
            p->partials_at += partials_of_blocks_ * size(place.rank);
        else if (p)
            p->partials_at = std::exchange(next, next + partials(elements(p->shape)));
        else
            entry.vector->partials_at =
                std::exchange(next, next + partials(size(padded(entry.vector->count))));
    }
}

MatrixParameter& WeightList::matrix(std::string_view name) {
    for (Entry& entry : entries_)
        if (entry.matrix && entry.matrix->name == name) return *entry.matrix;
    throw Error(ErrorKind::backend, "parameter", "there is no " + std::string(name));
}
VectorParameter& WeightList::vector(std::string_view name) {
    for (Entry& entry : entries_)
        if (entry.vector && entry.vector->name == name) return *entry.vector;
    throw Error(ErrorKind::backend, "parameter", "there is no " + std::string(name));
}
std::vector<MatrixParameter*> WeightList::matrices() {
    std::vector<MatrixParameter*> out;
    for (Entry& entry : entries_)
        if (entry.matrix) out.push_back(entry.matrix.get());
    return out;
}
std::vector<VectorParameter*> WeightList::vectors() {
    std::vector<VectorParameter*> out;
    for (Entry& entry : entries_)
        if (entry.vector) out.push_back(entry.vector.get());
    return out;
}

std::vector<ParameterCheckpoint> WeightList::read(const Whole& whole) const {
    std::vector<ParameterCheckpoint> out;
    for (const Entry& entry : entries_) {
        if (const MatrixParameter* p = entry.matrix.get())
            out.push_back({whole(p->master, *p), {whole(p->m, *p), whole(p->v, *p)}, {}});
        else if (const VectorParameter* v = entry.vector.get())
            out.push_back(
                {download(v->value, v->count), {download(v->m, v->count), download(v->v, v->count)}, {}});
    }
    return out;
}

void WeightList::write(const std::vector<ParameterCheckpoint>& values, const Part& part) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const ParameterCheckpoint& from = values[i];
        if (MatrixParameter* p = entries_[i].matrix.get()) {
            p->master.write(part(from.values, *p));
            p->m.write(part(from.moments.m, *p));
            p->v.write(part(from.moments.v, *p));
        } else if (VectorParameter* v = entries_[i].vector.get()) {
            upload(from.values, v->value);
            upload(from.moments.m, v->m);
            upload(from.moments.v, v->v);
        }
    }
}

std::string WeightList::nonfinite() const {
    for (const bool by_gemm : {true, false})
        for (const Entry& entry : entries_) {
            if (entry.read_by_gemm != by_gemm) continue;
            if (entry.matrix && !finite(entry.matrix->master.read())) return entry.matrix->name;
            if (entry.vector && !finite(entry.vector->value.download())) return entry.vector->name;
        }
    return {};
}

}  // namespace fp8lab::cuda
