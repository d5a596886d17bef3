// Exported code for torchao: the names that it uses, what is refused, and, where python3 has torchao, its codes and its
// gradients beside those of the file of plain PyTorch.
#include <doctest/doctest.h>

#include <fstream>
#include <regex>

#include "core/base/error.h"
#include "core/python/recipe_code.h"
#include "exported.h"
#include "tests/json.h"
#include "tests/scratch.h"
#include "torch_here.h"

using namespace fp8lab;

namespace {

// torchao's own casts, then a step of its layer; where that is in FP32 on a CPU, its output and gradients are those of the
// layer of plain PyTorch: the same operands in the same products. The paths come in pairs, torchao's first.
constexpr const char* kDriver = R"(
import importlib.util, inspect, sys, torch
torch.manual_seed(1)
def load(path):
    file = {"__name__": "file"}
    exec(compile(open(path).read(), path, "exec"), file)
    return file
stepped = compared = referred = 0
for ours, plain in zip(sys.argv[1::2], sys.argv[2::2]):
    file, plain = load(ours), load(plain)
    file["check"](), plain["check"]()
    if "block128" in ours and importlib.util.find_spec("triton"): # what torchao tests its kernels with
        from torchao.prototype.blockwise_fp8_training import kernels
        x = torch.randn(256, 256) * torch.logspace(-3, 3, 256).view(-1, 1)
        for name, reference in (("x_dy", "act_quant_lhs"), ("w", "weight_quant")):
            codes, scale_inv = getattr(kernels, "torch_blockwise_scale_" + reference)(x, 128)
            assert torch.equal(file["quantize_" + name](x)[0], codes.float()), f"{ours}: {name}"
        referred += 1
    if inspect.signature(file["step"]).parameters["device"].default != "cpu": continue
    file["step"]()
    stepped += 1
    if "dtype=torch.float32" not in open(ours).read(): continue
    compared += 1
    model, layer = file["layer"]("cpu"), plain["Linear"](64, 32)
    weight, bias = model.parameters()
    layer.load_state_dict({"weight": weight.detach(), "bias": bias.detach()})
    x = torch.randn(96, 64) * torch.logspace(-3, 3, 96).view(-1, 1)  # rows of other sizes
    xs = [x.clone().requires_grad_() for _ in range(2)]
    dy = torch.randn(96, 32) * torch.logspace(2, -4, 96).view(-1, 1)
    ys = model(xs[0]), layer(xs[1])
    for y in ys: y.backward(dy)
    for mine, theirs in zip((ys[0], xs[0].grad, weight.grad, bias.grad), (ys[1], xs[1].grad, layer.weight.grad, layer.bias.grad)):
        off = ((mine - theirs).norm() / theirs.norm()).item()
        assert off < 1e-5, f"{ours}: off by {off}"
print(stepped, compared, referred)
)";

std::string code(const std::string& recipe) {
    return recipe_code(parse_recipe(recipe), find_code_target("torchao"));
}

std::string refused(const std::string& recipe) {
    const std::string why = find_code_target("torchao").refusal(parse_recipe(recipe));
    if (!why.empty()) CHECK_THROWS_AS(code(recipe), Error);
    return why;
}

bool has(const nlohmann::json& list, const std::string& value) {
    return std::ranges::any_of(list, [&](const auto& item) { return item == value; });
}

std::vector<std::smatch> all(const std::string& text, const std::regex& pattern) {
    return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

// The words before '=' among the arguments of each call of `name`.
std::vector<std::string> keywords(const std::string& text, const std::string& name) {
    std::vector<std::string> out;
    static const std::regex kKeyword(R"(^\s*(\w+)=[^=])");
    for (auto at = text.find(name + "("); at != text.npos; at = text.find(name + "(", at + 1)) {
        if (at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_'))
            continue;
        std::string argument;
        int depth = 0;
        for (auto i = at + name.size() + 1; i < text.size() && depth >= 0; ++i) {
            depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
            if ((text[i] == ',' && depth == 0) || depth < 0) {
                std::smatch found;
                if (std::regex_search(argument, found, kKeyword)) out.push_back(found[1]);
                argument.clear();
            } else {
                argument += text[i];
            }
        }
    }
    return out;
}

}  // namespace

TEST_CASE("torchao has every name and keyword of the files that are written for it") {
    const auto facts = parsed(test::text_of(FP8LAB_SOURCE "/tests/unit/python/torchao_names.json"));
    static const std::regex kImport(R"(from (torchao[\w.]*) import ([^\n]*))"), kWord(R"(\w+)"),
        kMember(R"(\b(\w+)\.(\w+))"), kNamed(R"re(from_recipe_name\("(\w+)"\))re");
    std::size_t files = 0, names = 0, given = 0;
    for (const std::string& recipe : test::exported_recipes()) {
        CAPTURE(recipe);
        if (!refused(recipe).empty()) continue;
        ++files;
        const std::string text = code(recipe);
        for (const std::smatch& import : all(text, kImport)) {
            CAPTURE(import[0].str());
            REQUIRE(facts.at("modules").contains(import[1].str()));
            const std::string imported = import[2];
            for (const std::smatch& word : all(imported, kWord)) {
                ++names;
                CHECK(has(facts.at("modules").at(import[1].str()), word[0]));
            }
        }
        for (const std::smatch& member : all(text, kMember))
            if (facts.at("members").contains(member[1].str()))
                CHECK(has(facts.at("members").at(member[1].str()), member[2]));
        for (const std::smatch& named : all(text, kNamed)) CHECK(has(facts.at("recipe_names"), named[1]));
        for (const auto& [name, known] : facts.at("keywords").items())
            for (const std::string& keyword : keywords(text, name)) {
                CAPTURE(name + "(" + keyword + "=)");
                ++given;
                CHECK(has(known, keyword));
            }
    }
    CHECK(files > 15);
    CHECK(names > 60);
    CHECK(given > 60);
}

TEST_CASE("torchao's recipes have their names, others a config for each operand") {
    CHECK(code("current").find("\nconfig = Float8LinearConfig.from_recipe_name(\"tensorwise\")\n") !=
          std::string::npos);
    CHECK(code("rowwise:bwd=e4m3:pow2=1").find("from_recipe_name(\"rowwise\")") != std::string::npos);
    const std::string hybrid = code("rowwise:wgrad_in=bf16");
    CHECK(hybrid.find(R"(config = Float8LinearConfig(
    cast_config_input=CastConfig(scaling_granularity=ScalingGranularity.AXISWISE, target_dtype=torch.float8_e4m3fn),
    cast_config_weight=CastConfig(scaling_granularity=ScalingGranularity.AXISWISE, target_dtype=torch.float8_e4m3fn),
    cast_config_grad_output=CastConfig(scaling_granularity=ScalingGranularity.AXISWISE, target_dtype=torch.float8_e5m2),
    cast_config_grad_output_for_grad_weight=CastConfig(scaling_type=ScalingType.DISABLED, target_dtype=torch.float8_e5m2),
    cast_config_input_for_grad_weight=CastConfig(scaling_type=ScalingType.DISABLED, target_dtype=torch.float8_e4m3fn),
)
)") != std::string::npos);
    CHECK(code("current:bwd=e4m3:pow2=1").find("    round_scales_to_power_of_2=True,\n") !=
          std::string::npos);
    CHECK(code("current:fast_accum=none").find("gemm_config_output=Float8GemmConfig(use_fast_accum=False)") !=
          std::string::npos);
    const std::string all_fast = code("current:fast_accum=all");
    for (const char* product : {"grad_input", "grad_weight"})
        CHECK(all_fast.find(std::string("gemm_config_") + product +
                            "=Float8GemmConfig(use_fast_accum=True)") != std::string::npos);
    CHECK(code("mxfp8").find("mode = ScaleCalculationMode.RCEIL") != std::string::npos);
    CHECK(code("mxfp8:mxrule=floor").find("mode = ScaleCalculationMode.FLOOR") != std::string::npos);
    CHECK(code("mxfp8:wgrad_in=bf16").find("wgrad_with_hp=True") != std::string::npos);
    CHECK(code("current").find("dtype=torch.bfloat16") != std::string::npos);
    CHECK(code("current:out=fp32").find("dtype=torch.float32") != std::string::npos);
}

TEST_CASE("what torchao cannot express is refused with the reason") {
    const auto says = [](const std::string& recipe, const std::string& reason) {
        CAPTURE(recipe);
        const std::string why = refused(recipe);
        CAPTURE(why);
        CHECK(why.find(reason) != std::string::npos);
    };
    says("delayed", "no delayed scaling");
    says("bf16", "torch.nn.Linear is the layer");
    says("fp32", "torch.nn.Linear is the layer");
    says("unscaled", "no cast without a scale");
    says("int8", "E4M3 and E5M2, not to INT8");
    says("current:fwd=e3m4", "E4M3 and E5M2, not to E3M4");
    says("current:margin=2", "has no margin=2");
    says("current:amax=p99", "has no amax=p99");
    says("current:zero_amax=inf", "has no zero_amax=inf");
    says("current:overflow=nonsaturate", "has no overflow=nonsaturate");
    says("current:round_bwd=stochastic", "has no round_bwd=stochastic");
    says("current:round=stochastic", "no codes could be compared");
    says("current:bwd=bf16", "both operands of a product, or none");
    says("current:wgrad_in=e4m3", "the same format for both products");
    says("current:wgrad_in=fp32", "has the type of the layer, BF16");
    says("current:wgrad_in=mxfp8", "not for blocks");
    says("current:pow2=1:wgrad_in=rowwise", "to powers of two, or none");
    says("current:out=fp32:wgrad=bf16", "weight gradients");
    says("current:fake=1", "cast dy too");
    says("rowwise:colsrc=rowwise", "never the codes of another cast");
    says("current:master=none", "of the optimizer");
    says("current:wide=first", "of a whole model");
    says("mxfp8:mxrule=even", "it has mxfp8, with");
    says("mxfp8:bwd=e5m2", "it has mxfp8, with");
    says("mxfp8:wgrad_in=fp32", "it has mxfp8, with");
    says("mxfp4", "it has mxfp8, with");
    says("block128", "it has block128:pow2=0");
    says("block128:pow2=0:out=fp32", "it has block128:pow2=0");
    says("nvfp4", "it has nvfp4-te:rht=bf16");
    says("nvfp4-te:target=4or6", "it has nvfp4-te:rht=bf16");
}

TEST_CASE("exported code runs under torchao on a CPU, and its codes and gradients agree") {
    if (test::lacks("torch, torchao")) return;
    const Scratch scratch;
    std::ofstream(scratch / "driver") << kDriver;
    std::string words;
    for (const std::string& recipe : test::exported_recipes()) {
        if (!refused(recipe).empty()) continue;
        const std::string ours = scratch / (recipe + ".ao.py"), plain = scratch / (recipe + ".py");
        std::ofstream(ours) << code(recipe);
        std::ofstream(plain) << recipe_code(parse_recipe(recipe), find_code_target("pytorch"));
        words += " " + quoted(ours) + " " + quoted(plain);
    }
    const int status = test::status_of("python3 " + quoted(scratch / "driver") + words + " >" +
                                       quoted(scratch / "out") + " 2>" + quoted(scratch / "err"));
    const std::string err = test::text_of(scratch / "err"), out = test::text_of(scratch / "out");
    CAPTURE(err);
    CHECK(status == 0);
    int stepped = 0, compared = 0, referred = 0;
    std::istringstream(out) >> stepped >> compared >> referred;
    CHECK(stepped > 12);
    CHECK(compared > 6);
    CHECK(referred == (test::status_of("python3 -c 'import triton' 2>/dev/null") == 0 ? 1 : 0));
}

TEST_CASE("a code of torchao's that is not ours is found") {
    if (test::lacks("torch, torchao")) return;
    const Scratch scratch;
    std::string text = code("rowwise:bwd=e4m3:pow2=1");
    const auto at = text.find("            \"") + 13;
    text[at + 30] = text[at + 30] == '0' ? '1' : '0';
    std::ofstream(scratch / "file.py") << text;
    CHECK(test::status_of("python3 " + quoted(scratch / "file.py") + " 2>" + quoted(scratch / "err")) == 1);
    CHECK(test::text_of(scratch / "err").find("1 of 256 codes are not FP8 Lab's") != std::string::npos);
}
