#include "core/inspect/counterparts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "core/base/names.h"
#include "core/tensors/scales/layouts.h"

namespace fp8lab {
namespace {

using Names = Counterparts::Names;
using Shape = std::vector<std::size_t>;

constexpr std::string_view kWeight = ".weight";

// A fused matrix and its parts, in the order of their rows.
struct Fused {
    std::string_view whole;
    std::array<std::string_view, 3> parts;  // the last one may be empty
};
constexpr std::array kFused = {Fused{"qkv_proj", {"q_proj", "k_proj", "v_proj"}},
                               Fused{"gate_up_proj", {"gate_proj", "up_proj", ""}}};

std::string replaced(std::string_view name, std::string_view part, std::string_view by) {
    const std::size_t at = name.find(part);
    return std::string(name.substr(0, at)).append(by).append(name.substr(at + part.size()));
}

Names names_of(const TensorStore& store) {
    Names out;
    for (const StoredTensor& tensor : store.tensors())
        if (tensor.is_judged(true) && !out.emplace(bare_name(tensor.own_name()), &tensor).second)
            out.emplace(tensor.own_name(), &tensor);  // "model.w" beside "w"
    return out;
}
const StoredTensor* find_in(const Names& names, const std::string& name) {
    const auto found = names.find(name);
    return found == names.end() ? nullptr : found->second;
}
// Stacks of experts often have no ".weight".
const StoredTensor* find_either(const Names& names, const std::string& name) {
    if (const StoredTensor* const found = find_in(names, name)) return found;
    return find_in(names, name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size())
                                                  : name + std::string(kWeight));
}

std::string words_of(const Shape& shape) {
    return "(" + some_names(shape, [](std::size_t extent) { return std::to_string(extent); }) + ")";
}
Shape tail(const Shape& shape) { return {shape.begin() + 1, shape.end()}; }
bool are_transposed(const Shape& a, const Shape& b) {
    return a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
}

// Where the names fit and the shapes do not.
Counterpart unlike(std::vector<const StoredTensor*> named, const Shape& own, const Shape& there) {
    return {.named = std::move(named),
            .why = fmt::format("its shape is {}, in the original {}", words_of(own), words_of(there))};
}
Counterpart transposed(std::vector<const StoredTensor*> named) {
    return {.named = std::move(named),
            .why = "the matrices of its experts are transposed in the original",
            .other_order = true};
}

// How many matrices a tensor stacks.
std::size_t stacked(const StoredTensor& tensor) {
    return tensor.shape.size() > 2
               ? tensor.matrix().rows / std::max<std::size_t>(1, tensor.shape[tensor.shape.size() - 2])
               : 1;
}

// The rows of a fused matrix in the parts of the original; nothing: it has none of them.
std::optional<Counterpart> whole(const StoredTensor& tensor, const std::string& name, const Fused& fused,
                                 const Names& original) {
    Counterpart out;
    std::size_t rows = 0, wanted = 0;
    const std::size_t stack = stacked(tensor);
    bool fits = true;
    for (const std::string_view part : fused.parts) {
        if (part.empty()) continue;
        ++wanted;
        const StoredTensor* const there = find_in(original, replaced(name, fused.whole, part));
        if (!there) continue;
        out.named.push_back(there);
        fits = fits && there->matrix().cols == tensor.matrix().cols && stacked(*there) == stack;
        rows += there->matrix().rows;
    }
    if (out.named.empty()) return std::nullopt;
    if (!fits || out.named.size() != wanted || rows != tensor.matrix().rows) {
        out.why = fmt::format("its shape is {}, and the original has {} of its {} parts, with {} rows",
                              words_of(tensor.shape), out.named.size(), wanted, rows);
        return out;
    }
    for (std::size_t e = 0; e < stack; ++e)
        for (const StoredTensor* const there : out.named) {
            const std::size_t count = there->matrix().rows / stack;
            out.rows.push_back({there, e * count, count});
        }
    return out;
}

// Where the part begins in the fused matrix of the original: behind those of this model that stand before it.
std::optional<Counterpart> one_part(const StoredTensor& tensor, const std::string& name, const Fused& fused,
                                    std::string_view part, const Names& model, const Names& original) {
    const StoredTensor* const there = find_in(original, replaced(name, part, fused.whole));
    if (!there) return std::nullopt;
    const std::size_t stack = stacked(tensor);
    std::size_t first = 0, rows = 0;
    bool before = true, all = true;
    for (const std::string_view each : fused.parts) {
        if (each.empty()) continue;
        const StoredTensor* const own = find_in(model, replaced(name, part, each));
        all = all && own && stacked(*own) == stack;
        before = before && each != part;
        if (before && own) first += own->matrix().rows / stack;
        if (own) rows += own->matrix().rows / stack;
    }
    if (!all || stacked(*there) != stack || rows * stack != there->matrix().rows ||
        there->matrix().cols != tensor.matrix().cols)
        return unlike({there}, tensor.shape, there->shape);
    Counterpart out{.named = {there}};
    const std::size_t count = tensor.matrix().rows / stack;
    for (std::size_t e = 0; e < stack; ++e) out.rows.push_back({there, e * rows + first, count});
    return out;
}

// "layers.0.mlp.experts.3.up_proj.weight": what stands before the number and behind it; without a number, of a stack.
struct ExpertName {
    std::string before, after;
    std::optional<std::size_t> index;
};
std::optional<ExpertName> expert_name(const std::string& name) {
    constexpr std::string_view kExperts = "experts.";
    const std::size_t at = name.starts_with(kExperts) ? 0 : name.find("." + std::string(kExperts));
    if (at == name.npos) return std::nullopt;
    const std::size_t end = at + (at == 0 ? 0 : 1) + kExperts.size();
    ExpertName out{.before = name.substr(0, end), .after = name.substr(end), .index = {}};
    std::size_t number = 0;
    const char* const last = out.after.data() + out.after.size();
    const auto [stop, error] = std::from_chars(out.after.data(), last, number);
    if (error == std::errc() && stop != last && *stop == '.') {
        out.index = number;
        out.after.erase(0, static_cast<std::size_t>(stop - out.after.data()) + 1);
    }
    return out;
}

// The parts of one expert in the original, whole or gate and up.
std::vector<const StoredTensor*> parts_of_expert(const std::string& name, const Names& original) {
    if (const StoredTensor* const same = find_either(original, name)) return {same};
    const Fused& fused = kFused[1];
    if (name.find(fused.whole) == name.npos) return {};
    const StoredTensor* const gate = find_either(original, replaced(name, fused.whole, fused.parts[0]));
    const StoredTensor* const up = find_either(original, replaced(name, fused.whole, fused.parts[1]));
    return gate && up ? std::vector{gate, up} : std::vector<const StoredTensor*>{};
}

// A stack of experts of which the original has each by itself.
std::optional<Counterpart> stack_of(const StoredTensor& tensor, const ExpertName& name,
                                    const Names& original) {
    if (tensor.shape.size() < 2) return std::nullopt;
    Counterpart out;
    std::size_t experts = 0;
    bool fits = true;
    Shape found;  // of one expert
    for (;; ++experts) {
        const auto parts =
            parts_of_expert(name.before + std::to_string(experts) + "." + name.after, original);
        if (parts.empty()) break;
        Shape shape = parts.front()->shape;
        for (std::size_t i = 1; i < parts.size(); ++i)
            if (!shape.empty() && !parts[i]->shape.empty()) shape.front() += parts[i]->shape.front();
        if (fits) found = shape;
        fits = fits && shape == tail(tensor.shape);
        for (const StoredTensor* const part : parts) {
            out.named.push_back(part);
            out.rows.push_back({part, 0, part->matrix().rows});
        }
    }
    if (out.named.empty()) return std::nullopt;
    if (!fits && are_transposed(found, tail(tensor.shape))) return transposed(std::move(out.named));
    if (fits && experts == tensor.shape.front()) return out;
    out.rows.clear();
    out.why = fits ? fmt::format("it has {} experts, the original {}", tensor.shape.front(), experts)
                   : fmt::format("its experts are {}, in the original {}", words_of(tail(tensor.shape)),
                                 words_of(found));
    return out;
}

// One expert, or its gate or up, of which the original has a stack.
std::optional<Counterpart> in_stack(const StoredTensor& tensor, const ExpertName& name,
                                    const Names& original) {
    const StoredTensor* there = find_either(original, name.before + name.after);
    std::size_t parts = 1, part = 0;
    const Fused& fused = kFused[1];
    for (std::size_t i = 0; !there && i < 2; ++i)
        if (name.after.find(fused.parts[i]) != name.after.npos) {
            there = find_either(original, name.before + replaced(name.after, fused.parts[i], fused.whole));
            parts = 2, part = i;
        }
    if (!there || there->shape.size() < 2) return std::nullopt;
    Shape whole = tensor.shape;
    if (!whole.empty()) whole.front() *= parts;
    if (*name.index < there->shape.front() && tail(there->shape) == whole) {
        const std::size_t count = tensor.matrix().rows;
        return Counterpart{.rows = {{there, (*name.index * parts + part) * count, count}}, .named = {there}};
    }
    if (are_transposed(tail(there->shape), whole)) return transposed({there});
    return unlike({there}, tensor.shape, there->shape);
}

}  // namespace

std::string bare_name(std::string_view name) {
    constexpr std::array<std::string_view, 2> kPrefixes = {"model.", "language_model."};
    for (bool more = true; more;) {
        more = false;
        for (const std::string_view prefix : kPrefixes)
            if (name.starts_with(prefix)) name.remove_prefix(prefix.size()), more = true;
    }
    constexpr std::string_view kPacked = "qweight";  // of GPTQ and AWQ
    if (name.ends_with("." + std::string(kPacked)))
        return std::string(name.substr(0, name.size() - kPacked.size())).append("weight");
    for (const Layout& layout : layouts())
        if (layout.codes != kWeight && !layout.codes.empty() && name.ends_with(layout.codes)) {
            name.remove_suffix(layout.codes.size());
            break;
        }
    std::string out(name);
    // torchao's attribute "._weight" of ".weight".
    constexpr std::string_view kAttribute = "._weight";
    if (out.ends_with(kAttribute)) out.erase(out.size() - kAttribute.size() + 1, 1);
    return out;
}

Counterparts::Counterparts(const TensorStore& model, const TensorStore& original)
    : model_(names_of(model)), original_(names_of(original)) {}

Counterpart Counterparts::find(const StoredTensor& tensor) const {
    const std::string name = bare_name(tensor.own_name());
    const StoredTensor* same = find_in(original_, std::string(tensor.own_name()));
    if (!same) same = find_in(original_, name);
    if (same) {
        if (same->shape != tensor.shape) return unlike({same}, tensor.shape, same->shape);
        return {.rows = {{same, 0, same->matrix().rows}}, .named = {same}};
    }
    for (const Fused& fused : kFused) {
        if (name.find(fused.whole) != name.npos) {
            if (auto found = whole(tensor, name, fused, original_)) return *std::move(found);
            continue;
        }
        for (const std::string_view part : fused.parts)
            if (!part.empty() && name.find(part) != name.npos)
                if (auto found = one_part(tensor, name, fused, part, model_, original_))
                    return *std::move(found);
    }
    if (const auto expert = expert_name(name))
        if (auto found =
                expert->index ? in_stack(tensor, *expert, original_) : stack_of(tensor, *expert, original_))
            return *std::move(found);
    return {.why = "not in the original"};
}

}  // namespace fp8lab
