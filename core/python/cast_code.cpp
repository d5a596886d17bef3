#include "core/python/cast_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/python/element_code.h"

namespace fp8lab::python {
namespace {

std::string_view name_of(TensorClass tensor) {
    return tensor == TensorClass::x ? "x" : tensor == TensorClass::w ? "w" : "dy";
}

Along along_of(Operand operand) {
    return gemm_of(operand.tensor, Along::cols) == operand.gemm ? Along::cols : Along::rows;
}

// "x_w" where all products read them so, "x_fprop" where another one reads x in another way. Empty: all six.
std::string name_of(const std::vector<Operand>& operands) {
    if (operands.size() == kOperands.size()) return {};
    std::string out;
    for (const Operand& one : operands) {
        const auto uses = std::ranges::count(operands, one.tensor, &Operand::tensor);
        const std::string name =
            std::string(name_of(one.tensor)) + (uses == 2 ? "" : "_" + std::string(to_string(one.gemm)));
        if (out.find("_" + name) == out.npos) out += "_" + name;
    }
    return out;
}

// The largest value, lowered by the margin.
std::string target_of(const CastPlan& plan) {
    return number(std::ldexp(max_finite(*plan.format), -plan.margin));
}

// The scale of an amax: `before` is what stays where there is none.
std::string scale_lines(const CastPlan& plan, const std::string& amax) {
    std::string scale = fmt::format("scale_of({}, {})", amax, target_of(plan));
    if (plan.pow2) scale = "power_of_two(" + scale + ")";
    std::string out = "    scale = " + scale + "\n";
    if (plan.zero_amax == ZeroAmax::inf)
        out += fmt::format("    scale = torch.where({} == 0, torch.inf, scale)  # a fault, to study\n", amax);
    return out;
}

std::string per_tensor(const CastPlan& plan) {
    return "    \"\"\"One scale for the tensor, from its own amax.\"\"\"\n" +
           scale_lines(plan, "amax_of(x)") +
           fmt::format("    return {}(x * scale), 1 / scale\n", element_name(plan));
}

std::string per_block(const CastPlan& plan) {
    const bool rows = plan.granularity == Granularity::row;
    const std::string size = rows ? "1, x.shape[1]" : plan.square_blocks ? "128, 128" : "1, 128";
    return fmt::format("    \"\"\"{}.\"\"\"\n", rows                 ? "One scale for each row"
                                                : plan.square_blocks ? "One scale for each block of 128x128"
                                                                     : "One scale for each block of 1x128") +
           scale_lines(plan, fmt::format("per_block(sizes(x), {})", size)) +
           fmt::format("    return {}(x * scale), 1 / scale\n", element_name(plan));
}

std::string per_mx_block(const CastPlan& plan) {
    const FormatInfo& format = *plan.format;
    const int exponent = std::ilogb(max_finite(format));
    std::string out =
        "    \"\"\"Blocks of 32 under a power of two.\"\"\"\n    amax = per_block(x.abs(), 1, 32)\n";
    if (plan.mx_rule == MxRule::up) {
        out += fmt::format("    wanted = (amax / {}).clamp(max=2.0**127)\n", number(max_finite(format)));
        out +=
            "    scale = power_of_two(wanted)\n    scale = torch.where(wanted > scale, 2 * scale, scale)  # "
            "up\n";
    } else {
        out +=
            "    wanted = amax.clamp(max=torch.finfo(torch.float32).max)\n    scale = power_of_two(wanted)\n";
        if (plan.mx_rule == MxRule::even)
            out += fmt::format(
                "    scale = torch.where(wanted >= {} * scale, 2 * scale, scale)  # its significand rounds "
                "up to 2\n",
                shortest(2 - std::ldexp(1.0, -1 - (format.kind == Kind::integer ? exponent
                                                                                : format.mantissa_bits))));
        out += fmt::format("    scale = scale / 2**{}\n", exponent);
    }
    return out + "    scale = torch.where(wanted > 0, scale, wanted).clamp(2.0**-127, 2.0**127)\n" +
           fmt::format("    return {}(x * (1 / scale)), scale\n", element_name(plan));
}

std::string per_nvfp4_block(const CastPlan& plan) {
    const std::string size = plan.square_blocks ? "16, 16" : "1, 16", element = element_name(plan);
    const bool six = plan.target == Nvfp4Target::six, both = plan.target == Nvfp4Target::four_or_six;
    const std::string largest = six ? "2688" : "1536";  // 448 x 6, 256 x 6
    std::string out = fmt::format(
        "    \"\"\"Blocks of {} under a scale in E4M3, and an FP32 scale for the tensor.\"\"\"\n"
        "    amax = per_block(sizes(x), {})\n    whole = amax.max()\n    outer = scale_of(whole, {})\n",
        plan.square_blocks ? "16x16" : "16", size, largest);
    const auto cast = [&](const std::string& indent, const std::string& becomes) {
        return fmt::format(
            "{0}inner = e4m3(amax * (outer * (1 / {1})))\n"
            "{0}factor = (1 / (inner * (1 / outer))).clamp(max=torch.finfo(torch.float32).max)\n"
            "{0}q, scale = {2}(x * torch.where(inner == 0, 0, factor)), inner * (whole / {3})\n",
            indent, becomes, element, largest);
    };
    if (!both) return out + cast("    ", six ? "6" : "4") + "    return q, scale\n";
    return out + "    tried = []\n    for becomes in (6, 4):  # what the amax of a block becomes\n" +
           cast("        ", "becomes") +
           fmt::format(
               "        tried.append((per_block((x.double() - (q * scale).double())**2, {}, torch.sum), q, "
               "scale))\n"
               "    (six_error, q, scale), (four_error, q4, scale4) = tried\n    four = four_error < "
               "six_error\n"
               "    return torch.where(four, q4, q), torch.where(four, scale4, scale)\n",
               size);
}

std::string body_of(const CastPlan& plan) {
    if (plan.format->name == "fp32") return "    \"\"\"Not cast.\"\"\"\n    return x, 1.0\n";
    if (!plan.scaled)
        return fmt::format("    \"\"\"Cast as it is.\"\"\"\n    return {}(x), 1.0\n", element_name(plan));
    switch (plan.granularity) {
        case Granularity::tensor:
            return per_tensor(plan);
        case Granularity::row:
        case Granularity::block128:
            return per_block(plan);
        case Granularity::block32:
            return per_mx_block(plan);
        case Granularity::block16:
            return per_nvfp4_block(plan);
    }
    return {};
}

struct Helper {
    std::string_view name, text;
};
// Each is called by those below it only.
constexpr std::array kHelpers = {
    Helper{"sizes", R"(def sizes(x):
    """|x|. NaN takes no part in an amax."""
    return x.abs().nan_to_num(0, torch.inf)
)"},
    Helper{"power_of_two", R"(def power_of_two(x):
    """The largest power of two that x > 0 reaches."""
    return x / (2 * torch.frexp(x).mantissa)
)"},
    Helper{"per_block", R"(def per_block(x, height, width, reduce=torch.amax):
    """Reduces each block of height x width, and puts the result at every element of the block."""
    rows, cols = x.shape
    x = torch.nn.functional.pad(x, (0, -cols % width, 0, -rows % height))
    tiles = reduce(x.unflatten(1, (-1, width)).unflatten(0, (-1, height)), (1, 3))
    return tiles.repeat_interleave(height, 0).repeat_interleave(width, 1)[:rows, :cols]
)"},
    Helper{"scale_of", R"(def scale_of(amax, largest, before=1.0):
    """Brings amax to the largest value. An amax of 0, or one that is not finite, keeps the scale of before."""
    scale = (torch.tensor(float(largest)) / amax).clamp(max=torch.finfo(torch.float32).max)
    return torch.where((amax > 0) & amax.isfinite(), scale, before)
)"},
    Helper{"rotate", R"(def rotate(x):
    """The random Hadamard transform of each 16 elements along K, with Transformer Engine's signs."""
    signs = torch.tensor([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1.0])
    y = torch.nn.functional.pad(x, (0, -x.shape[1] % 16)).unflatten(1, (-1, 16)) * signs
    for apart in (1, 2, 4, 8):
        a, b = y.unflatten(-1, (-1, 2, apart)).unbind(-2)
        y = torch.stack((a + b, a - b), -2).flatten(-3)
    return y.flatten(1) / 4
)"},
    Helper{"value", R"(def value(q, scale_inv):
    return q * scale_inv
)"},
};

// "scale_of(" and not "mx_scale_of(".
bool calls(std::string_view text, std::string_view name) {
    const std::string call = std::string(name) + "(";
    for (auto at = text.find(call); at != text.npos; at = text.find(call, at + 1)) {
        const char before = at == 0 ? ' ' : text[at - 1];
        if (std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_' && before != '.')
            return true;
    }
    return false;
}

std::string amax_function(const Recipe& recipe) {
    if (recipe.amax_percentile == 0) return "def amax_of(x):\n    return sizes(x).max()\n";
    return fmt::format(
        "def amax_of(x):\n    \"\"\"The smallest |x| that {0} % of the elements do not exceed, by the "
        "nearest rank.\"\"\"\n"
        "    size = x.abs().flatten().nan_to_num(torch.inf, torch.inf)\n"
        "    return size.kthvalue(max(1, math.ceil({0} * size.numel() / 100 * (1 - 1e-12)))).values\n",
        shortest(recipe.amax_percentile));
}

}  // namespace

std::vector<CastGroup> cast_groups(const Recipe& recipe) {
    std::vector<CastGroup> groups;
    for (const Operand& operand : kOperands) {
        SideCast cast = side_cast(recipe, operand.tensor, along_of(operand));
        cast.rotated = cast.rotated && operand.gemm == Gemm::wgrad;  // of the tensor's two casts, this one
        // Delayed scaling has a history for each tensor.
        const auto same = [&](const CastGroup& group) {
            return group.cast == cast &&
                   (!group.is_delayed() || group.operands.front().tensor == operand.tensor);
        };
        const auto found = std::ranges::find_if(groups, same);
        if (found == groups.end())
            groups.push_back({{}, cast, {operand}});
        else
            found->operands.push_back(operand);
    }
    for (CastGroup& group : groups) group.name = "quantize" + name_of(group.operands);
    return groups;
}

const CastGroup& group_of(const std::vector<CastGroup>& groups, Operand operand) {
    return *std::ranges::find_if(groups, [&](const CastGroup& group) {
        return std::ranges::any_of(group.operands, [&](const Operand& one) {
            return one.tensor == operand.tensor && one.gemm == operand.gemm;
        });
    });
}

std::string quantize_function(const CastGroup& group, const Recipe& recipe) {
    std::string body = body_of(group.cast.plan);
    if (group.cast.rotated) {
        const auto after = body.find('\n') + 1;
        body.insert(after,
                    recipe.rht_bf16 ? "    x = rotate(x).bfloat16().float()\n" : "    x = rotate(x)\n");
    }
    return fmt::format("def {}(x):\n{}", group.name, body);
}

std::string delayed_call(const CastGroup& group) {
    return fmt::format("DelayedScale({}, {})", element_name(group.cast.plan), target_of(group.cast.plan));
}

std::string delayed_class(const Recipe& recipe) {
    std::string out = fmt::format(
        R"(class DelayedScale:
    """Casts with a scale that the amaxes of earlier calls gave, in Transformer Engine's order."""

    def __init__(self, cast, largest):
        self.cast, self.largest = cast, largest
        self.scale, self.history, self.calls = torch.tensor(1.0), torch.zeros({}), 0

    def __call__(self, x):
        q, scale_inv = self.cast(x * self.scale), 1 / self.scale
        self.history = torch.cat((amax_of(x).view(1), self.history[:-1]))  # the newest first
        self.calls += 1
)",
        recipe.history);
    std::string amax = "self.history.max()", more;
    if (recipe.algo == AmaxAlgo::most_recent) amax = "self.history[0]";
    if (recipe.algo == AmaxAlgo::ema) {
        amax = "average";
        more = fmt::format(
            "        decay, average = torch.tensor({}), torch.tensor(0.0)\n"
            "        for amax in self.history.flip(0):  # the oldest first\n"
            "            if amax != 0:\n"
            "                mixed = (decay.double() * average + (1 - decay) * amax).float()\n"
            "                average = amax if average == 0 else mixed\n",
            shortest(recipe.ema_decay));
    }
    out += more;
    std::string scale = fmt::format("scale_of({}, self.largest, self.scale)", amax);
    if (recipe.pow2) scale = "power_of_two(" + scale + ")";
    if (recipe.zero_amax == ZeroAmax::inf)
        scale = fmt::format("torch.where({} == 0, torch.inf, {})", amax, scale);
    const std::string indent = recipe.interval > 1 ? "            " : "        ";
    if (recipe.interval > 1) out += fmt::format("        if self.calls % {} == 0:\n", recipe.interval);
    return out + indent + "self.scale = " + scale + "\n        return q, scale_inv\n";
}

std::string helpers_for(std::string_view text, const Recipe& recipe) {
    std::string all(text), out;
    const auto add = [&](std::string_view name, std::string_view helper) {
        if (!calls(all, name)) return;
        all += helper;
        out = std::string(helper) + "\n\n" + out;
    };
    add("amax_of", amax_function(recipe));
    for (auto helper = kHelpers.rbegin(); helper != kHelpers.rend(); ++helper)
        add(helper->name, helper->text);
    return out;
}

}  // namespace fp8lab::python
