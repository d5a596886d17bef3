#include "kernels/transformer/weights.h"

#include <algorithm>
#include <cmath>

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

WeightList::WeightList(const ModelPlan& plan, const WeightTypes& types, const ArmBuffers& memory) {
    int number = 0;
    for (const ParameterSpec& spec : plan.parameters) {
        ++number;
        Entry entry{.read_by_gemm = spec.operand.has_value(), .matrix = nullptr, .vector = nullptr};
        const int count = static_cast<int>(spec.shape.back());
        if (spec.shape.size() == 2) {
            auto p = std::make_unique<MatrixParameter>();
            p->name = spec.name;
            p->shape = shape_of(static_cast<int>(spec.shape.front()), count);
            // The embedding is not read by a GEMM unless the head is tied to it; it is gathered in FP32.
            const Element kept = entry.read_by_gemm && spec.name != "embedding" ? types.kept : Element::f32,
                          gradient = kept == Element::f32 && spec.name == "embedding" ? Element::f32
                                                                                      : types.gradient;
            const auto of = [&](ArmPart part, Element element) {
                return Parameters(element, p->shape, memory.take(part, number));
            };
            p->master = of(ArmPart::master, kept);
            p->gradient = of(ArmPart::weight_gradient, gradient);
            p->m = of(ArmPart::m, entry.read_by_gemm ? types.m : Element::f32);
            p->v = of(ArmPart::v, entry.read_by_gemm ? types.v : Element::f32);
            p->partials_at = square_partials_;
            square_partials_ += size(cuda::square_partials(static_cast<long long>(elements(p->shape))));
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
            p->partials_at = square_partials_;
            square_partials_ += size(cuda::square_partials(padded(count)));
            entry.vector = std::move(p);
        }
        entries_.push_back(std::move(entry));
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

std::vector<ParameterCheckpoint> WeightList::read() const {
    std::vector<ParameterCheckpoint> out;
    for (const Entry& entry : entries_) {
        if (const MatrixParameter* p = entry.matrix.get())
            out.push_back({p->master.read(), {p->m.read(), p->v.read()}, {}});
        else if (const VectorParameter* v = entry.vector.get())
            out.push_back(
                {download(v->value, v->count), {download(v->m, v->count), download(v->v, v->count)}, {}});
    }
    return out;
}

void WeightList::write(const std::vector<ParameterCheckpoint>& values) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const ParameterCheckpoint& from = values[i];
        if (MatrixParameter* p = entries_[i].matrix.get()) {
            p->master.write(from.values);
            p->m.write(from.moments.m);
            p->v.write(from.moments.v);
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
