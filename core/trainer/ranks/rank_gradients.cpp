#include "core/trainer/ranks/rank_gradients.h"

#include <algorithm>

#include "core/formats/codec.h"
#include "core/ranks/codes.h"

namespace fp8lab {
namespace {

std::size_t rounded_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace

RankGradients::RankGradients(const Ranks& ranks, const ModelPlan& plan)
    : plan_(plan), ranks_(ranks), sum_(find_rank_sum(ranks.sum)) {
    for (std::size_t p = 0; p < plan_.parameters.size(); ++p)
        (plan_.only_gemms_read(plan_.parameters[p]) ? matrices_ : others_).push_back(p);
}

void RankGradients::reduce(Collective& collective, Gradients gradients,
                           std::span<const std::span<float>> mean) {
    distance_ = {};
    const std::vector<float> scale = scales(collective, gradients);
    for (std::size_t i = 0; i < matrices_.size(); ++i)
        reduce_matrix(collective, gradients, matrices_[i], scale[i], mean[matrices_[i]]);
    if (!others_.empty()) reduce_others(collective, gradients, mean);
}

std::vector<float> RankGradients::scales(Collective& collective, Gradients gradients) const {
    std::vector<float> out(matrices_.size(), 1.0F);
    if (!sum_.is_scaled()) return out;
    std::vector<std::vector<float>> amaxes(gradients.size());
    std::vector<RankValues> values;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
        for (const std::size_t p : matrices_) amaxes[r].push_back(amax(gradients[r][p]));
        values.push_back({static_cast<int>(r), amaxes[r].data()});
    }
    collective.all_reduce_max(values, matrices_.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = shared_scale(sum_, amaxes[0][i], ranks_.count);
    return out;
}

void RankGradients::reduce_matrix(Collective& collective, Gradients gradients, std::size_t parameter,
                                  float scale, std::span<float> mean) {
    const auto& shape = plan_.parameters[parameter].shape;
    const std::size_t n = mean.size(), count = gradients.size();
    const std::size_t padded =
        ranks_.sharded() ? count * block_rows(shape[0], ranks_.count) * (n / shape[0]) : rounded_up(n, count);
    std::vector<std::vector<float>> sent;
    std::vector<std::span<const float>> views;
    for (const auto& of_rank : gradients) {
        views.emplace_back(of_rank[parameter]);
        cast_to_send(sum_, views.back(), scale, std::span(sent.emplace_back(padded, 0.0F)).first(n));
    }
    std::vector<float> total = sum_of(collective, sum_, sent);
    const float scale_inv = 1 / scale;
    for (float& value : total) value *= scale_inv;
    distance_ += distance_of_sum(std::span(total).first(n), views);
    for (std::size_t i = 0; i < n; ++i) mean[i] = total[i] / static_cast<float>(count);
}

void RankGradients::reduce_others(Collective& collective, Gradients gradients,
                                  std::span<const std::span<float>> mean) {
    std::vector<std::vector<float>> sent(gradients.size());
    for (std::size_t r = 0; r < gradients.size(); ++r) {
        for (const std::size_t p : others_)
            sent[r].insert(sent[r].end(), gradients[r][p].begin(), gradients[r][p].end());
        sent[r].resize(rounded_up(sent[r].size(), gradients.size()));
    }
    const std::vector<float> total = sum_of(collective, find_rank_sum("fp32"), sent);
    auto next = total.begin();
    for (const std::size_t p : others_)
        for (float& value : mean[p]) value = *next++ / static_cast<float>(gradients.size());
}

std::vector<float> RankGradients::sum_of(Collective& collective, const RankSum& sum,
                                         const std::vector<std::vector<float>>& sent) const {
    const std::size_t padded = sent[0].size(), n = padded / sent.size();
    const auto in_bytes = static_cast<std::size_t>(storage_bytes(sum.sent())),
               out_bytes = static_cast<std::size_t>(storage_bytes(sum.kept()));
    std::vector<std::vector<std::byte>> codes;
    std::vector<std::byte> blocks(padded * out_bytes);  // rank r's at block r
    std::vector<RankBuffers> buffers;
    for (std::size_t r = 0; r < sent.size(); ++r) {
        write_codes(sum.sent(), sent[r], {.overflow = default_overflow(sum.sent())},
                    codes.emplace_back(padded * in_bytes).data());
        buffers.push_back({static_cast<int>(r), codes.back().data(), blocks.data() + r * n * out_bytes});
    }
    collective.reduce_scatter(sum, buffers, n);
    std::vector<float> total(padded);
    read_codes(sum.kept(), blocks.data(), total);
    return total;
}

}  // namespace fp8lab
