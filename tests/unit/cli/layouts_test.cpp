// What the verbs say of checkpoints in published layouts: scripts/layout_samples.py makes the files.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "process.h"
#include "tests/json.h"

using nlohmann::json;

namespace {

const std::string kFolder = FP8LAB_SOURCE "/tests/unit/tensors/layouts/";

json rows_of(const Finished& run) {
    json out = json::object();
    const json report = parsed(run.out);
    for (const json& row : report["rows"]) out[row["name"].get<std::string>()] = row;
    return out;
}
bool has(const std::string& text, const std::string& part) {
    CAPTURE(text);
    return text.find(part) != text.npos;
}
std::ptrdiff_t lines(const std::string& text) { return std::ranges::count(text, '\n'); }

}  // namespace

TEST_CASE("codes without a scale are said in every output and are not judged until that is asked for") {
    const std::string file = kFolder + "plain.safetensors",
                      all = "inspect " + file + " --recipe current,mxfp8";
    const Finished table = fp8lab(all), csv = fp8lab(all + " --csv -"), as_json = fp8lab(all + " --json");
    for (const Finished* run : {&table, &csv, &as_json}) {
        CHECK(run->code == 0);
        CHECK(lines(run->err) == 1);
        CHECK(has(run->err,
                  "inspect: 2 tensors hold codes without a scale, none found: layers.0.down.bias, "
                  "layers.0.down.weight; --unscaled-codes takes the codes as values"));
    }
    CHECK(has(table.out, "none found"));
    CHECK(has(table.out, "of 1 tensors meet"));
    CHECK(has(csv.out, ",,codes without a scale,"));
    const json row = rows_of(as_json)["layers.0.down.weight"];
    CHECK(row["scales"] == "none found");
    CHECK(row["not_scanned"] == "codes without a scale");
    CHECK_FALSE(row.contains("recommended"));
    CHECK_FALSE(row.contains("amax"));
    const json taken = rows_of(fp8lab(all + " --json --unscaled-codes"))["layers.0.down.weight"];
    CHECK(taken["scales"] == "none found");
    CHECK(taken.contains("recommended"));

    const Finished before =
        fp8lab("inspect " + kFolder + "hf-fp8.safetensors --recipe bf16 --compare " + file);
    CHECK(before.code == 0);
    CHECK(has(before.err, "plain.safetensors: 2 tensors hold codes without a scale"));

    const std::string one = "quantize " + file + ":layers.0.down.weight --recipe current --json";
    const Finished refused = fp8lab(one), values = fp8lab(one + " --unscaled-codes");
    CHECK(refused.code == 4);
    CHECK(refused.out.empty());
    CHECK(lines(refused.err) == 1);
    CHECK(has(refused.err, "tensor 'layers.0.down.weight' holds F8_E4M3 codes without a scale: none found"));
    CHECK(values.code == 0);
    CHECK(has(values.err, "codes without a scale, none found: they are taken as values"));
    CHECK(parsed(values.out)["scales"] == "none found");
    CHECK(parsed(values.out)["amax"] == taken["amax"]);
}

TEST_CASE("odd scales are counted in columns behind all others, and in each output") {
    const std::string file = kFolder + "odd-scales.safetensors", all = "inspect " + file + " --recipe bf16";
    const Finished csv = fp8lab(all + " --csv -"), compared = fp8lab(all + " --csv - --compare " + file),
                   table = fp8lab(all), as_json = fp8lab(all + " --json");
    const std::string columns = ",scale_nan,scale_inf,scale_zero,scale_subnormal,scale_negative\n";
    CHECK(has(csv.out, ",beyond_float32,below_float32" + columns));
    CHECK(has(compared.out, ",change,beyond_float32,below_float32" + columns));
    CHECK(has(csv.out, ",1,1,1,1,1\n"));
    CHECK(has(csv.out, ",,,,,\n"));  // the scales themselves have none
    CHECK(has(table.out, "1 NaN, 1 Inf, 1 zero, 1 subnormal, 1 negative"));
    CHECK(has(table.err, "1 tensor has scales that are NaN, infinite, 0, subnormal or negative: "));
    const json odd = {{"nan", 1}, {"inf", 1}, {"zero", 1}, {"subnormal", 1}, {"negative", 1}};
    CHECK(rows_of(as_json)["layers.0.down.weight"]["odd_scales"] == odd);
    const Finished one = fp8lab("quantize " + file + ":layers.0.down.weight --recipe bf16 --json");
    CHECK(one.code == 0);
    CHECK(parsed(one.out)["odd_scales"] == odd);
    CHECK(has(one.err, "among its scales: 1 NaN, 1 Inf, 1 zero, 1 subnormal, 1 negative"));
    const Finished usual = fp8lab("inspect " + kFolder + "hf-fp8.safetensors --recipe bf16 --json");
    CHECK(usual.err.empty());
    CHECK_FALSE(rows_of(usual)["layers.0.down.weight"].contains("odd_scales"));
}

TEST_CASE("a tensor that does not fit is refused with its reason, and the others are read") {
    const std::string file = kFolder + "misfit.safetensors";
    const Finished run = fp8lab("inspect " + file + " --recipe bf16 --json");
    CHECK(run.code == 0);
    const std::string why = "scales of shape (3, 2) fit no division of (4, 6)";
    const json rows = rows_of(run);
    CHECK(rows["layers.0.down.weight"]["not_scanned"] == why);
    CHECK(rows["ok.weight"]["recommended"] == "bf16");
    CHECK(has(run.err, "inspect: not read: " + why + ": layers.0.down.weight\n"));
    const Finished csv = fp8lab("inspect " + file + " --recipe bf16 --csv -");
    CHECK(has(csv.out, ",,\"" + why + "\","));
    const Finished one = fp8lab("quantize " + file + ":layers.0.down.weight --recipe bf16");
    CHECK(one.code == 4);
    CHECK(has(one.err, "tensor 'layers.0.down.weight': " + why));
    CHECK(fp8lab("quantize " + file + ":ok.weight --recipe bf16").code == 0);
    // Nothing is left to read, and still the file is listed.
    const Finished fused = fp8lab("inspect " + kFolder + "fused-qkv-alone.safetensors --recipe bf16");
    CHECK(fused.code == 0);
    CHECK(has(fused.out, "3 scales for a fused matrix"));
}

TEST_CASE("quantize gives an FP4 weight the shape of its values and names its scales") {
    const json out = parsed(fp8lab("quantize " + kFolder +
                                   "ct-nvfp4.safetensors:layers.0.down.weight_packed --recipe nvfp4 --json")
                                .out);
    CHECK(out["rows"] == 4);
    CHECK(out["cols"] == 32);
    CHECK(out["scales"] == "layers.0.down.weight_scale, one scale per 1 x 16, a global scale");
}

TEST_CASE("a long name loses its middle in the table, and nowhere else") {
    const Scratch scratch;
    const std::string name = "begin" + std::string(90, '.') + "end";
    const std::string header = R"({")" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    const std::uint64_t length = header.size();
    spit(scratch / "m.safetensors",
         std::string(reinterpret_cast<const char*>(&length), 8) + header + bytes_of({1}));
    const std::string all = "inspect " + (scratch / "m.safetensors") + " --recipe bf16";
    const std::string table = fp8lab(all).out;
    CHECK_FALSE(has(table, name));
    CHECK(has(table, "\nbegin"));
    CHECK(has(table, "end "));
    CHECK(has(fp8lab(all + " --csv -").out, name));
}

TEST_CASE("inspect --against adds columns behind all others, and names what has no counterpart") {
    const std::string file = kFolder + "hf-fp8.safetensors",
                      all = "inspect " + file + " --recipe bf16 --against " + file;
    const Finished csv = fp8lab(all + " --csv -"), as_json = fp8lab(all + " --json"), table = fp8lab(all);
    CHECK(csv.code == 0);
    CHECK(csv.err.empty());
    CHECK(has(csv.out,
              ",scale_negative,against_sqnr_db,against_rel_l2,against_cosine,worst_row,worst_row_db\n"));
    CHECK(has(csv.out, ",0,0,0,0,0,inf,0,"));
    CHECK(has(table.out, "against, dB"));
    CHECK(rows_of(as_json)["layers.0.down.weight"]["against"]["rel_l2"] == 0);
    const Finished other =
        fp8lab("inspect " + file + " --recipe bf16 --json --against " + kFolder + "ct-fp8-conv.safetensors");
    CHECK(other.code == 0);
    CHECK(has(other.err,
              "inspect: 1 tensor of the model has no counterpart in the original, by name and shape: "
              "layers.0.down.weight\n"));
    CHECK(has(other.err,
              "inspect: 1 tensor of the original has no counterpart in the model, by name and shape: "
              "conv.weight\n"));
    CHECK(fp8lab("inspect " + file + " --against nowhere.safetensors").code == 4);
}
