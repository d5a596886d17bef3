#include "core/nn/models/decoder/gated_mlp.h"

#include "core/nn/models/decoder/initial_weights.h"
#include "core/nn/models/decoder/shape.h"
#include "core/nn/ops/columns.h"
#include "core/nn/ops/swiglu.h"

namespace fp8lab {
namespace {

GatedActivation activation_of(SwigluForm form) {
    return form == SwigluForm::clamp ? GatedActivation::clamp : GatedActivation::swiglu;
}

}  // namespace

template <class T>
GatedMlp<T>::GatedMlp(std::size_t d, std::size_t ffn, TensorId gate_up_id, TensorId down_id)
    : gate_up(gate_up_id), down(down_id) {
    gate_up.w = gate_up.dw = Matrix<T>(2 * ffn, d);
    down.w = down.dw = Matrix<T>(d, ffn);
}

template <class T>
void GatedMlp<T>::list(std::vector<Parameter<T>>& parameters, std::vector<const Matrix<T>*>& tensors) {
    gate_up.list(parameters, tensors);
    down.list(parameters, tensors);
}

template <class T>
void GatedMlp<T>::initialise(const InitialWeights<T>& weights) {
    weights.reads(gate_up);
    weights.writes(down);
}

template <class T>
void GatedMlp<T>::forward(GemmCasts<T>& casts, Product<T> product, Matrix<T>& y) {
    smooth_ = casts.swiglu() == SwigluForm::smooth;
    gate_up.forward(casts, gate_up.w, gates_, product);
    {
        const TraceSpan span("layer", "SwiGLU");
        gated_activation(activation_of(casts.swiglu()), gates_, a_);
        casts.round_output(a_);
    }
    if (!smooth_) {
        down.x = a_;
        down.forward(casts, down.w, y, product);
        return;
    }
    channel_scales(a_, scales_);
    scale_columns(a_, scales_, down.x);
    unscale_columns(down.w, scales_, scaled_w_);
    down.forward(casts, scaled_w_, y, product);
}

template <class T>
void GatedMlp<T>::backward(const Matrix<T>& dy, GemmCasts<T>& casts, Matrix<T>& dx) {
    down.dy = dy;
    if (smooth_) {  // dL/da = dL/d(a s) s, dL/dw = dL/d(w / s) / s
        down.backward(casts, scaled_w_, da_);
        scale_columns(da_, scales_);
        unscale_columns(down.dw, scales_, down.dw);
    } else {
        down.backward(casts, da_);
    }
    {
        const TraceSpan span("layer", "SwiGLU backward");
        gated_activation_backward(activation_of(casts.swiglu()), da_, gates_, gate_up.dy);
        casts.round_output(gate_up.dy);
    }
    gate_up.backward(casts, dx);
}

void plan_gated_mlp(ModelPlan& plan, int block, const std::string& prefix, std::size_t d, std::size_t ffn) {
    plan_linear(plan, GemmRole::linear, block, prefix + "gate_up", 2 * ffn, d);
    plan_linear(plan, GemmRole::linear, block, prefix + "down", d, ffn);
}

template class GatedMlp<float>;
template class GatedMlp<double>;

}  // namespace fp8lab
