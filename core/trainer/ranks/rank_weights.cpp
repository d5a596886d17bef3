#include "core/trainer/ranks/rank_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ranks/codes.h"
#include "core/tensors/inflate.h"
#include "core/trainer/ranks/rank_gradients.h"

namespace fp8lab {
namespace {

bool is_cast(const FormatInfo& sent) { return is_element(sent); }

double distance_pct(std::span<const float> values, std::span<const float> from) {
    Distance distance;
    for (std::size_t i = 0; i < from.size(); ++i)
        distance.add(static_cast<double>(values[i]), static_cast<double>(from[i]));
    return distance.error_pct();
}

}  // namespace

RankWeights::RankWeights(const Ranks& ranks, const ModelPlan& plan) : ranks_(ranks), plan_(plan) {
    if (!ranks.sharded()) return;
    for (std::size_t p = 0; p < plan.parameters.size(); ++p) {
        const ParameterSpec& spec = plan.parameters[p];
        if (!plan.only_gemms_read(spec)) continue;
        Weight w{.parameter = p, .id = *spec.operand, .rows = spec.shape[0], .cols = spec.shape[1]};
        w.block = block_rows(w.rows, ranks.count) * w.cols;
        weights_.push_back(std::move(w));
    }
}

std::span<const float> RankWeights::Weight::part(std::span<const float> all, std::size_t rank) const {
    const std::size_t begin = std::min(rank * block, all.size());
    return all.subspan(begin, std::min(block, all.size() - begin));
}

bool RankWeights::own_scales(const Weight& w) const {
    return is_cast(*w.sent) && ranks_.weight_scale == WeightScale::own;
}

void RankWeights::gather(Collective& collective, std::span<const Parameter<float>> parameters,
                         std::span<RecipeCasts* const> casts) {
    spread_pct_ = 0;
    for (Weight& w : weights_) {
        const std::span<const float> master = parameters[w.parameter].value;
        w.sent = &sent_format(ranks_, plan_.recipe_of(casts[0]->recipe(), w.id));
        send(collective, w, master, casts);
        read(w);
        CastStats stats;
        for (std::size_t r = 0; r < casts.size(); ++r) {
            RecipeCasts::Gathered gathered{.values = &w.read_by(r), .is_cast = is_cast(*w.sent)};
            if (gathered.is_cast) {
                if (r == 0 || own_scales(w)) stats = stats_of(w, master, r);
                gathered.amax = w.amaxes[r], gathered.scale = w.scales[r], gathered.stats = stats;
            }
            casts[r]->use_gathered(w.id, std::move(gathered));
            if (r > 0 && own_scales(w))
                spread_pct_ = std::max(spread_pct_, distance_pct(w.values[r].values, w.values[0].values));
        }
    }
}

void RankWeights::choose_scales(Collective& collective, Weight& w, std::span<const float> master,
                                std::span<RecipeCasts* const> casts) const {
    const std::size_t count = casts.size();
    w.scales.assign(count, 1.0F);
    w.amaxes.clear();
    for (std::size_t r = 0; r < count; ++r) w.amaxes.push_back(amax(w.part(master, r)));
    if (!is_cast(*w.sent)) return;
    std::vector<float> largest = w.amaxes;
    std::vector<RankValues> values;
    for (std::size_t r = 0; r < count; ++r) values.push_back({static_cast<int>(r), &largest[r]});
    collective.all_reduce_max(values, 1);
    for (std::size_t r = 0; r < count; ++r) {
        if (ranks_.weight_scale == WeightScale::reduced || w.part(master, r).empty())
            w.amaxes[r] = largest[r];
        w.scales[r] = casts[r]->scale_for(w.id, w.amaxes[r]);
    }
}

void RankWeights::send(Collective& collective, Weight& w, std::span<const float> master,
                       std::span<RecipeCasts* const> casts) const {
    choose_scales(collective, w, master, casts);
    const std::size_t count = casts.size(),
                      bytes = w.block * static_cast<std::size_t>(storage_bytes(*w.sent));
    std::vector<std::vector<std::byte>> own(count, std::vector<std::byte>(bytes));
    std::vector<RankBuffers> buffers;
    w.codes.resize(count);
    for (std::size_t r = 0; r < count; ++r) {
        const CastOptions options = is_cast(*w.sent) ? casts[r]->cast_options(w.id, w.scales[r], r * w.block)
                                                     : CastOptions{.overflow = default_overflow(*w.sent)};
        write_codes(*w.sent, w.part(master, r), options, own[r].data());
        w.codes[r].resize(count * bytes);
        buffers.push_back({static_cast<int>(r), own[r].data(), w.codes[r].data()});
    }
    collective.all_gather(buffers, bytes);
}

void RankWeights::read(Weight& w) const {
    const std::size_t count = w.codes.size(),
                      bytes = w.block * static_cast<std::size_t>(storage_bytes(*w.sent));
    w.values.resize(own_scales(w) ? count : 1);
    for (std::size_t reader = 0; reader < w.values.size(); ++reader) {
        Matrix<float>& to = w.values[reader];
        to.resize(w.rows, w.cols);
        for (std::size_t owner = 0; owner * w.block < to.values.size(); ++owner) {
            const std::size_t begin = owner * w.block;
            const auto part =
                std::span(to.values).subspan(begin, std::min(w.block, to.values.size() - begin));
            read_codes(*w.sent, w.codes[reader].data() + owner * bytes, part);
            const float scale_inv = 1 / w.scales[own_scales(w) ? reader : owner];
            for (float& value : part) value *= scale_inv;
        }
    }
}

CastStats RankWeights::stats_of(const Weight& w, std::span<const float> master, std::size_t rank) const {
    CastStats stats;
    for (std::size_t owner = 0; owner * w.block < master.size(); ++owner)
        stats += measure_cast(w.part(master, owner), w.part(w.read_by(rank).values, owner),
                              {&w.scales[owner], 1}, overflow_threshold(*w.sent));
    return stats;
}

std::vector<RankState> RankWeights::states(std::span<const Parameter<float>> parameters) const {
    std::vector<RankState> out(static_cast<std::size_t>(ranks_.count));
    for (std::size_t r = 0; r < out.size(); ++r) {
        RankState& state = out[r];
        std::vector<std::byte> bytes, values;
        for (const Weight& w : weights_) {
            const std::span<const float> master = parameters[w.parameter].value, read = w.read_by(r).values;
            const auto end =
                w.codes[r].begin() +
                static_cast<std::ptrdiff_t>(master.size() * static_cast<std::size_t>(storage_bytes(*w.sent)));
            bytes.insert(bytes.end(), w.codes[r].begin(), end);
            const auto raw = std::as_bytes(read);
            values.insert(values.end(), raw.begin(), raw.end());
            state.weights.push_back({.id = w.id,
                                     .amax = amax(w.part(master, r)),
                                     .scale = w.scales[r],
                                     .off_pct = distance_pct(read, master)});
        }
        if (!weights_.empty()) state.bytes_crc32 = crc32(bytes), state.values_crc32 = crc32(values);
    }
    return out;
}

}  // namespace fp8lab
