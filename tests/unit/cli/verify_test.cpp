// fp8lab verify: sentences, JSON and exit codes.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "faulty.h"
#include "process.h"
#include "tests/json.h"

namespace {

using nlohmann::json;

const std::string kLayouts = FP8LAB_SOURCE "/tests/unit/tensors/layouts/";

std::string call_of(const Scratch& scratch) {
    return "verify " + (scratch / "model.safetensors") + " --against " + (scratch / "original.safetensors");
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("verify names each fault in a sentence, and its exit code is 1 where there is one") {
    const Scratch scratch;
    for (const char* name : {"nvfp4 1/g", "mxfp4 healthy", "mxfp8 byte as a number",
                             "e4m3-row decoded with 1/s", "two tensors swapped", "fine-tuned by 8 %"}) {
        CAPTURE(name);
        const std::string words = write_faulty_file(name, scratch.path);
        const Finished run = fp8lab(call_of(scratch)), as_json = fp8lab(call_of(scratch) + " --json");
        const bool healthy = words == "fine";
        CHECK(run.code == (healthy ? 0 : 1));
        CHECK(as_json.code == run.code);
        CHECK(run.err.empty() == healthy);
        CHECK(run.out.starts_with("proj.weight"));
        CHECK(has(run.out, ": " + words + "; "));
        const json all = parsed(as_json.out);
        CHECK(all["faults"] == (healthy ? 0 : name == std::string("two tensors swapped") ? 2 : 1));
        CHECK(all["tensors"][0]["fault"] == !healthy);
        CHECK(all["tensors"][0]["cause"].is_null() == healthy);
        CHECK(all["tensors"][0]["rel_l2"].is_number());
        CHECK(has(all["tensors"][0]["says"], words));
    }
    write_faulty_file("nvfp4 1/g", scratch.path);
    const Finished run = fp8lab(call_of(scratch));
    CHECK(run.out.starts_with("proj.weight_packed: global scale is the reciprocal; relative L2 0.09"));
    CHECK(run.out.ends_with(" then\n1 tensor: 0 fine, 1 with a fault\n"));
    CHECK(run.err == "fp8lab: verify: 1 tensor: 0 fine, 1 with a fault\n");
}

TEST_CASE("verify without an original tells odd scales, codes without a scale and what is not read") {
    const auto of = [](const std::string& file) { return fp8lab("verify " + kLayouts + file); };
    const Finished fine = of("int8.safetensors");
    CHECK(fine.code == 0);
    CHECK(fine.out == "layers.0.down.weight: fine\n1 tensor: 1 fine, 0 with a fault\n");
    const Finished odd = of("odd-scales.safetensors");
    CHECK(odd.code == 1);
    CHECK(has(odd.out, " values are NaN or Inf; among its scales: "));
    const Finished plain = of("plain.safetensors");
    CHECK(plain.code == 1);
    CHECK(has(plain.out, "layers.0.down.weight: codes without a scale, none found"));
    const Finished fused = of("fused-qkv-alone.safetensors");
    CHECK(fused.code == 1);
    CHECK(has(fused.out, "attn.qkv_proj.weight: not read: 3 scales for a fused matrix"));
}

TEST_CASE("verify refuses what it cannot read, and an original that has none of the tensors") {
    const Scratch scratch;
    spit(scratch / "torn.safetensors", std::string(20, 'x'));
    CHECK(fp8lab("verify " + (scratch / "torn.safetensors")).code == 4);
    CHECK(fp8lab("verify " + (scratch / "none.safetensors")).code == 4);
    const std::string file = kLayouts + "int8.safetensors", other = kLayouts + "ct-fp8-conv.safetensors";
    CHECK(fp8lab("verify " + file + " --against " + (scratch / "none.safetensors")).code == 4);
    const Finished run = fp8lab("verify " + file + " --against " + other);
    CHECK(run.code == 4);
    CHECK(has(run.err, "ct-fp8-conv.safetensors: has none of the tensors of "));
    CHECK(run.out.empty());
}
