#include "core/tensors/scales/find_scales.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/json/read_json.h"
#include "core/tensors/dtype.h"
#include "core/tensors/scales/layouts.h"

namespace fp8lab {
namespace {

// Why a tensor is not read.
struct Refusal {
    std::string why;
    bool is_broken = false;  // StoredTensor::is_broken
};

std::string extents(std::span<const std::size_t> shape) {
    return "(" + some_names(shape, [](std::size_t extent) { return std::to_string(extent); }) + ")";
}

bool is_e8m0(const StoredTensor& scale) { return scale.dtype == "F8_E8M0" || scale.dtype == "U8"; }

constexpr const char* kEndsInByte = "a row of codes ends in the midst of a byte";
bool ends_in_byte(const StoredTensor& tensor) {
    return !tensor.shape.empty() && tensor.shape.back() * bits_of_dtype(tensor.element) % 8 != 0;
}

// torchao says so in the metadata, per tensor, as JSON in a text.
bool says_swizzled(const nlohmann::json& node) {
    if (node.is_object())
        for (const auto& [name, value] : node.items())
            if (name == "is_swizzled_scales" && value.is_boolean() && value.get<bool>()) return true;
    return node.is_structured() && std::ranges::any_of(node, says_swizzled);
}

class Finder {
  public:
    explicit Finder(const Model& model) : model_(model) {
        if (!model.config) return;
        for (const WeightScheme& scheme : model.config->schemes)
            if (scheme.block) blocks_.insert(blocks_.end(), scheme.block->begin(), scheme.block->end());
    }

    void run() {
        for (StoredTensor& tensor : model_.tensors)
            if (const auto what = aside_of(tensor.name); !what.empty()) {
                tensor.role = TensorRole::aside;
                tensor.why = what;
            }
        for (StoredTensor& tensor : model_.tensors)
            if (tensor.role != TensorRole::aside) find_for(tensor);
        for (StoredTensor& tensor : model_.tensors) rest(tensor);
    }

  private:
    struct Hit {
        const Layout* layout;
        const StoredTensor* scale;
    };

    StoredTensor* own(std::string_view name) const {
        const auto found = std::ranges::lower_bound(model_.tensors, name, {}, &StoredTensor::name);
        return found == model_.tensors.end() || found->name != name ? nullptr : &*found;
    }
    const StoredTensor* find(const std::string& name) const {
        if (name.empty()) return nullptr;
        if (const StoredTensor* const here = own(name)) return here;
        return model_.elsewhere ? model_.elsewhere(name) : nullptr;
    }
    void mark(const std::string& name) const {
        if (StoredTensor* const tensor = own(name)) tensor->role = TensorRole::scale, tensor->why = "scales";
    }
    bool has_beside(const StoredTensor& tensor, std::string_view beside) const {
        const auto begins = [&](const std::string& name) {
            const auto found = std::ranges::lower_bound(model_.tensors, name, {}, &StoredTensor::name);
            return found != model_.tensors.end() && found->name.starts_with(name);
        };
        const std::string& name = tensor.name;
        return begins(name + std::string(beside)) ||
               begins(name.substr(0, name.rfind('.')) + std::string(beside));
    }

    std::optional<Hit> hit_for(const StoredTensor& tensor) const {
        const bool codes = may_be_codes(tensor.dtype);
        if (!codes && !is_float_dtype(tensor.dtype)) return std::nullopt;
        for (const Layout& layout : layouts()) {
            if (layout.plain_name && !codes) continue;
            const std::string name = layout.scale_of(tensor.name);
            const StoredTensor* const scale = codes ? find(name) : own(name);
            if (scale && scale != &tensor && bits_of_dtype(scale->dtype) >= 8 &&
                (is_float_dtype(scale->dtype) || scale->dtype == "U8"))
                return Hit{&layout, scale};
        }
        return std::nullopt;
    }

    void find_for(StoredTensor& tensor) const {
        try {
            refuse_unread(tensor);
            const auto hit = hit_for(tensor);
            if (!hit) return;
            mark(hit->scale->name);
            const std::string global = hit->layout->global_of(tensor.name);
            mark(global);
            if (may_be_codes(tensor.dtype)) {
                read_codes(tensor, *hit, global);
                return note_others(tensor, *hit, global);
            }
            tensor.note = "a scale stands beside values that are no codes: it is not applied";
        } catch (const Refusal& refusal) {
            tensor.role = TensorRole::refused;
            tensor.element = {};
            tensor.why = refusal.why;
            tensor.is_broken = refusal.is_broken;
        }
    }

    // Scales of another layout that stand beside the same codes.
    void note_others(StoredTensor& tensor, const Hit& hit, const std::string& global) const {
        for (const Layout& layout : layouts()) {
            const std::string name = layout.scale_of(tensor.name);
            const StoredTensor* const other = own(name);
            if (!other || other == hit.scale || name == global || other == &tensor ||
                !is_float_dtype(other->dtype))
                continue;
            mark(name);
            tensor.note = fmt::format("of two sets of scales the second one is not applied{}{}",
                                      tensor.note.empty() ? "" : "; ", tensor.note);
            return;
        }
    }

    void refuse_unread(const StoredTensor& tensor) const {
        for (const Unread& unread : unread_layouts()) {
            if (!tensor.name.ends_with(unread.ending) ||
                (!unread.dtype.empty() && tensor.dtype != unread.dtype) ||
                (!unread.beside.empty() && !has_beside(tensor, unread.beside)))
                continue;
            if (!unread.scale.empty())
                mark(tensor.name.substr(0, tensor.name.size() - unread.ending.size()).append(unread.scale));
            throw Refusal{std::string(unread.why)};
        }
    }

    // Sets element and shape: what each byte holds.
    void set_element(StoredTensor& tensor, const Hit& hit) const {
        if (is_code_dtype(tensor.dtype)) {
            tensor.element = float_dtype(tensor.dtype);
            return;
        }
        const StoredTensor& scale = *hit.scale;
        std::vector<std::size_t>& shape = tensor.shape;
        if (hit.layout->in_blocks) {
            constexpr std::size_t kBytes = 16;  // of a block
            if (tensor.dtype != "U8" || shape.size() < 2 || shape.back() != kBytes || !is_e8m0(scale))
                throw Refusal{fmt::format("{} codes of shape {} are no blocks of 16 bytes", tensor.dtype,
                                          extents(shape)),
                              true};
            shape.pop_back();
            shape.back() *= 2 * kBytes;
        } else if (tensor.dtype == "I8" &&
                   !(is_e8m0(scale) && !scale.shape.empty() && !shape.empty() && shape.back() % 16 == 0 &&
                     scale.shape.back() == shape.back() / 16)) {
            tensor.element = "I8";
            return;
        } else if (!shape.empty() && (is_e8m0(scale) || scale.dtype == "F8_E4M3")) {
            shape.back() *= 2;
        } else {
            throw Refusal{fmt::format("{} codes with scales in {} are not known", tensor.dtype, scale.dtype)};
        }
        tensor.element = "F4";
    }

    void read_codes(StoredTensor& tensor, const Hit& hit, const std::string& global_name) const {
        const std::vector<std::size_t> stored = tensor.shape;
        try {
            set_element(tensor, hit);
            check(tensor, hit);
            const StoredTensor& scale = *hit.scale;
            StoredScales scales{.name = scale.name,
                                .layout = hit.layout->id,
                                .element = is_e8m0(scale) ? "F8_E8M0" : float_dtype(scale.dtype),
                                .file = scale.file,
                                .begin = scale.begin,
                                .count = static_cast<std::size_t>(scale.values()),
                                .grid = grid_of(tensor, scale)};
            if (const StoredTensor* const global = find(global_name)) {
                if (tensor.element == "F4" && scale.dtype == "U8")
                    throw Refusal{"scales in U8 under a global scale may be E8M0 or E4M3: not known"};
                scales.global = GlobalScale{one_value(*global), hit.layout->divides};
            }
            tensor.scales = std::move(scales);
            tensor.role = TensorRole::values;
            compare_with_config(tensor);
        } catch (const Refusal&) {
            tensor.shape = stored;
            throw;
        }
    }

    void check(const StoredTensor& tensor, const Hit& hit) const {
        if (ends_in_byte(tensor)) throw Refusal{kEndsInByte, true};
        const std::string base = tensor.name.substr(0, tensor.name.size() - hit.layout->codes.size());
        if (const StoredTensor* const zeros = find(base + "_zero_point"); zeros && !all_zero(*zeros))
            throw Refusal{"codes with a zero point, which is not 0, are not read"};
        if (hit.layout->id != "torchao") return;
        std::string owner = base;  // "down_proj._weight" of the weight "down_proj.weight"
        if (const std::size_t at = owner.rfind("._"); at != owner.npos) owner.erase(at + 1, 1);
        const auto& metadata = model_.metadata[tensor.file];
        const auto found = metadata.find(owner);
        if (found != metadata.end() && says_swizzled(parse(found->second)))
            throw Refusal{"its scales are swizzled for a GPU (is_swizzled_scales)"};
    }
    static nlohmann::json parse(const std::string& text) {
        try {
            return parse_json(text, "");
        } catch (const Error&) {
            return {};
        }
    }

    ScaleGrid grid_of(const StoredTensor& tensor, const StoredTensor& scale) const {
        auto grids = scale_grids(tensor.shape, scale.shape, blocks_);
        if (grids.size() == 1) return grids.front();
        for (const ScaleGrid& grid : grids)
            if (model_.config && std::ranges::any_of(model_.config->schemes, [&](const WeightScheme& each) {
                    return each.block && has_block(grid, *each.block);
                }))
                return grid;
        if (!grids.empty())
            throw Refusal{fmt::format("scales of shape {} fit two divisions of {}", extents(scale.shape),
                                      extents(tensor.shape))};
        const std::uint64_t n = scale.values();
        const bool fused = tensor.shape.size() == 2 && (n == 2 || n == 3) && scale.shape.size() <= 2 &&
                           scale.shape.front() == n;
        if (!fused) throw no_division(tensor, scale);
        const auto parts =
            model_.config ? model_.config->parts_of(tensor.shape[0], n) : std::vector<std::size_t>{};
        if (parts.empty())
            throw Refusal{
                fmt::format("{} scales for a fused matrix: how many of its {} rows each part has is "
                            "in config.json only, {}",
                            n, with_commas(tensor.shape[0]),
                            model_.config ? "and that one has other sizes" : "which is not there")};
        return fused_grid(tensor.shape, parts);
    }

    // Scales that divide each dimension evenly may be blocks of a size that is not known here.
    Refusal no_division(const StoredTensor& tensor, const StoredTensor& scale) const {
        Refusal out{fmt::format("scales of shape {} fit no division of {}", extents(scale.shape),
                                extents(tensor.shape)),
                    true};
        constexpr std::size_t kBlock = 128;
        const auto blocks = [](std::size_t extent) { return (extent + kBlock - 1) / kBlock; };
        if (tensor.shape.size() == 2 && scale.shape.size() == 2 &&
            scale.shape[0] == blocks(tensor.shape[1]) && scale.shape[1] == blocks(tensor.shape[0])) {
            out.why += "; transposed they do";
            return out;
        }
        bool even = tensor.shape.size() == scale.shape.size();
        for (std::size_t d = 0; even && d < tensor.shape.size(); ++d)
            even = scale.shape[d] > 0 && tensor.shape[d] % scale.shape[d] == 0;
        if (even) out.why += " that is known", out.is_broken = false;
        return out;
    }

    static bool has_block(const ScaleGrid& grid, const std::array<std::size_t, 2>& block) {
        const std::size_t n = grid.shape.size();
        if (n < 2) return true;
        for (std::size_t d = 0; d < 2; ++d) {
            const std::size_t extent = grid.shape[n - 2 + d],
                              own = grid.counts[n - 2 + d] == 1 ? extent : grid.extents[n - 2 + d];
            if (own != (block[d] == 0 ? extent : std::min(block[d], extent))) return false;
        }
        return true;
    }

    // The tensors win; that they do is said.
    void compare_with_config(StoredTensor& tensor) const {
        const ScaleGrid& grid = tensor.scales->grid;
        if (!model_.config || grid.shape.size() > 3 || !grid.ends.empty()) return;
        const auto& schemes = model_.config->schemes;
        const auto bits = static_cast<int>(bits_of_dtype(tensor.element));
        const auto agrees = [&](const WeightScheme& each) {
            return (!each.bits || *each.bits == bits) && (!each.block || has_block(grid, *each.block));
        };
        if (schemes.empty() || std::ranges::any_of(schemes, agrees)) return;
        tensor.note = fmt::format("{} says {}; the tensors have {} bits, {}, and are read so",
                                  model_.config->file, model_.config->words(), bits, grid.words());
    }

    float one_value(const StoredTensor& tensor) const {
        if (tensor.values() != 1)
            throw Refusal{fmt::format("{} global scales", tensor.values()), tensor.values() == 0};
        if (!is_float_dtype(tensor.dtype))
            throw Refusal{fmt::format("a global scale in {} is not known", tensor.dtype)};
        std::vector<std::byte> bytes(tensor.end - tensor.begin);
        model_.files[tensor.file].read(tensor.begin, bytes);
        float value = 0;
        decode_stored(tensor.dtype, bytes, {&value, 1});
        return value;
    }
    bool all_zero(const StoredTensor& tensor) const {
        constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
        for (std::uint64_t at = tensor.begin; at < tensor.end; at += kPiece) {
            const auto bytes = model_.files[tensor.file].read_some(at, std::min(kPiece, tensor.end - at));
            if (std::ranges::any_of(bytes, [](std::byte byte) { return byte != std::byte{0}; })) return false;
        }
        return true;
    }

    // "w.scale", which is a scale if the codes "w.weight" are in another file of the model.
    bool has_codes_elsewhere(const StoredTensor& tensor) const {
        if (!model_.elsewhere || !tensor.is_float()) return false;
        for (const Layout& layout : layouts()) {
            const std::string codes = layout.plain_name ? layout.codes_of(tensor.name) : std::string();
            if (codes.empty() || own(codes)) continue;
            const StoredTensor* const found = model_.elsewhere(codes);
            if (found && may_be_codes(found->dtype)) return true;
        }
        return false;
    }

    // Tensors that no rule has found.
    void rest(StoredTensor& tensor) const {
        if (tensor.scales || tensor.role == TensorRole::aside || tensor.role == TensorRole::refused ||
            tensor.role == TensorRole::scale)
            return;
        if ((is_scale_name(tensor.name) && (tensor.is_float() || tensor.dtype == "U8")) ||
            has_codes_elsewhere(tensor))
            return mark(tensor.name);
        const auto in_bytes = [&](const Layout& layout) {
            return tensor.dtype == "U8" && !layout.codes.empty() && !layout.plain_name &&
                   layout.codes != ".weight" && tensor.name.ends_with(layout.codes);
        };
        if (is_code_dtype(tensor.dtype)) {
            tensor.role = ends_in_byte(tensor) ? TensorRole::refused : TensorRole::unscaled;
            tensor.why = ends_in_byte(tensor) ? kEndsInByte : "codes without a scale";
            if (ends_in_byte(tensor)) tensor.element = {}, tensor.is_broken = true;
        } else if (std::ranges::any_of(layouts(), in_bytes)) {
            tensor.role = TensorRole::refused;
            tensor.why = "FP4 codes without a scale";
            tensor.is_broken = true;
        }
    }

    const Model& model_;
    std::vector<std::size_t> blocks_;
};

}  // namespace

StoredTensor from_safetensors(const std::string& name, const SafeTensorInfo& info, std::size_t file) {
    StoredTensor tensor{.name = name, .dtype = info.dtype, .shape = info.shape, .file = file};
    tensor.begin = info.begin, tensor.end = info.end;
    tensor.element = float_dtype(info.dtype);
    tensor.role = info.dtype == "F8_E8M0" ? TensorRole::scale
                  : tensor.is_float()     ? TensorRole::values
                                          : TensorRole::other;
    if (tensor.role != TensorRole::values) tensor.why = tensor.is_float() ? "scales" : "not a float";
    return tensor;
}

bool may_be_codes(std::string_view dtype) { return is_code_dtype(dtype) || dtype == "U8" || dtype == "I8"; }

void find_scales(const Model& model) { Finder(model).run(); }

}  // namespace fp8lab
