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
    CHECK(run.err == "fp8lab: verify: 1 of 1 tensor has a fault\n");
}

TEST_CASE("verify without an original tells odd scales, codes without a scale and what is not read") {
    const auto of = [](const std::string& file) { return fp8lab("verify " + kLayouts + file); };
    const Finished fine = of("int8.safetensors");
    CHECK(fine.code == 0);
    CHECK(fine.out ==
          "layers.0.down.weight: nothing wrong found\n1 tensor: 1 with nothing wrong found, 0 with a fault; "
          "without an original the values are not checked\n");
    const Finished odd = of("odd-scales.safetensors");
    CHECK(odd.code == 1);
    CHECK(has(odd.out, " values are NaN or Inf; "));
    CHECK(has(odd.out, " become 0 under their scales; among its scales: "));
    const Finished plain = of("plain.safetensors");
    CHECK(plain.code == 1);
    CHECK(has(plain.out, "layers.0.down.weight: codes without a scale, none found"));
    const Finished fused = of("fused-qkv-alone.safetensors");
    CHECK(fused.code == 4);  // not read, and no fault
    CHECK(has(fused.out, "attn.qkv_proj.weight: not read: 3 scales for a fused matrix"));
    CHECK(has(fused.out, "0 with a fault, 1 not read; "));
    CHECK(has(fused.err,
              "fused-qkv-alone.safetensors: 1 of 1 tensor is not read: attn.qkv_proj.weight: 3 scales"));
    const Finished misfit = of("misfit.safetensors");
    CHECK(misfit.code == 1);
    CHECK(has(misfit.out, "layers.0.down.weight: scales of shape (3, 2) fit no division of (4, 6)\n"));
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

TEST_CASE("verify of a folder says which file in it to name") {
    const Scratch scratch;
    write_faulty_file("nvfp4 1/g", scratch.path);
    const Finished two = fp8lab("verify " + scratch.path.string());
    CHECK(two.code == 4);
    CHECK(two.err ==
          "fp8lab: " + scratch.path.string() +
              ": is a folder, not a file: name one of model.safetensors, original.safetensors in it\n");
    spit(scratch / "model.safetensors.index.json", "{}");
    CHECK(has(fp8lab("inspect " + scratch.path.string()).err,
              "is a folder, not a file: name model.safetensors.index.json in it"));
}

TEST_CASE("verify: a tensor that one side lacks is exit code 1, with a row, and in the JSON by side") {
    const Scratch one, two;
    write_faulty_file("mxfp4 healthy", one.path);
    write_faulty_file("two tensors swapped", two.path);
    const auto call = [](const std::string& file, const std::string& original) {
        return "verify " + file + " --against " + original;
    };
    const std::string less = one / "original.safetensors", more = two / "original.safetensors";
    const Finished own = fp8lab(call(more, less)), there = fp8lab(call(less, more));
    CHECK(own.code == 1);
    CHECK(has(own.out, "up.weight: not in the original\n"));
    CHECK(has(own.err, "verify: 1 of 2 tensors has a fault\n"));
    CHECK(there.code == 1);
    CHECK(has(there.out, "up.weight: in the original, not in the model\n"));
    const json all = parsed(fp8lab(call(less, more) + " --json").out);
    CHECK(all["unmatched"].empty());
    CHECK(all["unmatched_there"] == json({"up.weight"}));
    CHECK(all["tensors"][1]["verdict"] == "fault");
    CHECK(all["not_read"] == 0);
}
