// Exported code under PyTorch on this machine's CPU. Where python3 has no PyTorch, these tests say that they are skipped.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/python/recipe_code.h"
#include "exported.h"
#include "tests/scratch.h"
#include "torch_here.h"

using namespace fp8lab;
using test::lacks, test::status_of, test::text_of;

namespace {

// Stands for Transformer Engine, which needs a GPU; runs check(), trains one step where the file has a layer of its own,
// and holds its gradients to those of torch.nn.functional.linear.
constexpr const char* kDriver = R"(
import sys, types, torch
package = [types.ModuleType("transformer_engine" + part) for part in ("", ".pytorch", ".common", ".common.recipe")]
class Any:
    def __getattr__(self, name): return Any()
    def __call__(self, *arguments, **named): return Any()
package[3].__getattr__ = lambda name: Any()
sys.modules.update({module.__name__: module for module in package})
package[0].pytorch = package[1]
torch.manual_seed(1)
for path in sys.argv[1:]:
    file = {"__name__": "file"}
    exec(compile(open(path).read(), path, "exec"), file)
    file["check"]()
    if "Linear" not in file: continue
    layer, x = file["Linear"](64, 48), torch.randn(3, 32, 64, requires_grad=True)
    dy = torch.randn(3, 32, 48)
    for step in range(4): # the first ones of delayed scaling have scale 1
        layer.zero_grad(), setattr(x, "grad", None)
        layer(x).backward(dy)
    if "margin=-" in path or "unscaled:fwd" in path: continue # values beyond or below the format, on purpose
    plain = [x.detach().clone().requires_grad_(), *(p.detach().clone().requires_grad_() for p in layer.parameters())]
    torch.nn.functional.linear(*plain).backward(dy)
    for mine, exact in zip((x, layer.weight, layer.bias), plain):
        near = torch.nn.functional.cosine_similarity(mine.grad.flatten(), exact.grad.flatten(), 0)
        assert near > 0.95, f"{path}: a gradient has a cosine of {near} with the exact one"
)";

// Exported files for a target: how many there are, and the words of a command that names them.
struct Files {
    Scratch scratch;
    int count = 0;
    std::string words;
    explicit Files(const CodeTarget& target, const std::vector<std::string>& texts) {
        std::ofstream(scratch / "driver") << kDriver;
        for (const std::string& text : texts) {
            const Recipe recipe = parse_recipe(text);
            if (!target.refusal(recipe).empty()) continue;
            const std::string path = scratch / (text + ".py");
            std::ofstream(path) << recipe_code(recipe, target);
            words += " " + quoted(path), ++count;
        }
    }
    int run() const {
        return status_of("python3 " + quoted(scratch / "driver") + words + " 2>" + quoted(scratch / "err"));
    }
    std::string err() const { return text_of(scratch / "err"); }
};

}  // namespace

TEST_CASE("exported code runs under PyTorch, and its codes and gradients agree") {
    if (lacks("torch")) return;
    for (const CodeTarget& target : code_targets()) {
        CAPTURE(std::string(target.name));
        if (target.name == "torchao") continue;  // torchao_test.cpp
        const Files files(target, test::exported_recipes());
        const int code = files.run();
        CAPTURE(files.err());
        CHECK(code == 0);
        CHECK(files.count > (target.name == "torchtitan" ? 5 : 12));
    }
}

TEST_CASE("exported code finds a code of another value") {
    if (lacks("torch")) return;
    const CodeTarget& target = find_code_target("pytorch");
    for (const std::string recipe : {"mxfp8", "delayed"}) {
        CAPTURE(recipe);
        const Files files(target, {recipe});
        const std::string path = files.scratch / (recipe + ".py");
        std::string text = text_of(path);
        const auto at = text.find("            \"") + 13;
        text[at + 30] = text[at + 30] == '0' ? '1' : '0';
        std::ofstream(path) << text;
        CHECK(files.run() == 1);
        CHECK(files.err().find("1 of 256 codes are not FP8 Lab's") != std::string::npos);
    }
}
