// Matrices at the edges of a diagnosis: large ones that are sampled first, stacks of matrices, zeros, NaN, threads, the end of
// long work.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"
#include "core/verify/hypotheses.h"
#include "core/verify/verify.h"
#include "faulty_files.h"
#include "tests/scratch.h"

using namespace fp8lab;
using faulty::File;
using faulty::Shape;
using faulty::Values;

namespace {

Verification verified(const Scratch& scratch, const File& model, const File& original) {
    faulty::write_tensors(scratch.path / "model.safetensors", model);
    faulty::write_tensors(scratch.path / "original.safetensors", original);
    return verify(std::make_shared<TensorStore>(scratch.path / "model.safetensors"),
                  std::make_shared<TensorStore>(scratch.path / "original.safetensors"));
}

// Of the first tensor.
Diagnosis diagnosed(const File& model, const File& original) {
    const Scratch scratch;
    const Verification all = verified(scratch, model, original);
    REQUIRE(all.tensors.front().diagnosis.has_value());
    return *all.tensors.front().diagnosis;
}

File original_of(const Values& w, Shape shape) {
    return {{"proj.weight", faulty::bf16(w, {shape.rows, shape.cols})}};
}
File file_of(const faulty::Weight& weight) {
    File out;
    faulty::add(out, "proj", weight);
    return out;
}

}  // namespace

TEST_CASE("a matrix of many bands: faults are named, unless only a part of it has them") {
    const Shape shape{.rows = 2048, .cols = 1024};
    const Values w = faulty::weights(3, shape);
    const File original = original_of(w, shape);
    faulty::Weight bad = faulty::cast("mxfp4", w, shape);
    CHECK(diagnosed(file_of(bad), original).words == "fine");
    faulty::swap_pairs(bad.codes);
    const Diagnosis whole = diagnosed(file_of(bad), original);
    CHECK(whole.fault == "nibbles");
    CHECK(whole.mended == doctest::Approx(0.134).epsilon(0.03));
    // The second half is right again.
    faulty::Bytes half(bad.codes.begin() + static_cast<std::ptrdiff_t>(bad.codes.size() / 2),
                       bad.codes.end());
    faulty::swap_pairs(half);
    std::ranges::copy(half, bad.codes.begin() + static_cast<std::ptrdiff_t>(bad.codes.size() / 2));
    CHECK(diagnosed(file_of(bad), original).words == "none of these");
    // Of 512 tiles those of 128 rows.
    faulty::Weight part = faulty::cast("mxfp4", w, shape);
    faulty::Bytes rows(part.codes.begin(), part.codes.begin() + 128 * 1024);
    faulty::swap_pairs(rows);
    std::ranges::copy(rows, part.codes.begin());
    CHECK(diagnosed(file_of(part), original).words == "local: 32 of 512 tiles");
    const Shape square{.rows = 1280, .cols = 1280};
    const Values v = faulty::weights(4, square);
    CHECK(diagnosed(file_of(faulty::cast("e4m3-row", faulty::transposed(v, square), square)),
                    original_of(v, square))
              .fault == "weight-transposed");
}

TEST_CASE("scales that are NaN, off or lost are local, one factor, or lost") {
    const Shape shape;
    const Values w = faulty::weights(5, shape);
    const File original = original_of(w, shape);
    const faulty::Weight right = faulty::cast("e4m3-row", w, shape);
    faulty::Weight bad = right;
    bad.scales[7] = std::numeric_limits<float>::quiet_NaN();
    const Diagnosis nan = diagnosed(file_of(bad), original);
    CHECK(nan.words == "local: 1 of 512 scales");
    CHECK(std::isinf(nan.rel_l2));
    CHECK(nan.mended < 0.03);
    bad = right;
    for (float& scale : bad.scales) scale *= 2;
    CHECK(diagnosed(file_of(bad), original).words == "all values are 2 times the right ones");
    bad = right;
    std::ranges::rotate(bad.scales, bad.scales.begin() + 100);
    CHECK(diagnosed(file_of(bad), original).words == "scales of another tensor or rule");
    Values half = w;
    for (float& value : half) value *= 0.5F;
    CHECK(diagnosed({{"proj.weight", faulty::bf16(half, {512, 512})}}, original).words ==
          "all values are 0.5 times the right ones");
    // Codes of a plain cast, in a file without scales.
    const Diagnosis plain = diagnosed({{"proj.weight", {"F8_E4M3", {512, 512}, right.codes}}}, original);
    CHECK(plain.words == "scale lost");
}

TEST_CASE("what is the original's, zeros, and weights whose scale is 1 anyway are fine") {
    const Shape shape{.rows = 256, .cols = 256};
    Values w = faulty::weights(6, shape);
    const Diagnosis same = diagnosed(original_of(w, shape), original_of(w, shape));
    CHECK(same.words == "fine");
    CHECK(same.rel_l2 == 0);
    CHECK(same.sentence() == "fine; relative L2 0");
    const Values zeros(w.size());
    for (const CodeLayout& layout : code_layouts()) {
        CAPTURE(layout.name);
        const std::string name(layout.name);
        CHECK(diagnosed(file_of(faulty::cast(name.c_str(), zeros, shape)), original_of(zeros, shape)).words ==
              "fine");
        const Diagnosis lost =
            diagnosed(file_of(faulty::cast(name.c_str(), w, shape)), original_of(zeros, shape));
        CHECK(lost.is_fault());
        CHECK(std::isinf(lost.rel_l2));
    }
    // An amax of 448: the cast with scale 1 is our own.
    for (float& value : w) value *= 256;
    w[5] = 448;
    for (float& value : w) value = std::clamp(value, -448.F, 448.F);
    w = faulty::to_bf16(w);
    CHECK(diagnosed(file_of(faulty::cast("e4m3-tensor", w, shape)), original_of(w, shape)).words == "fine");
    std::fill_n(w.begin(), 128 * 256, 0.F);
    for (const CodeLayout& layout : code_layouts())
        CHECK(diagnosed(file_of(faulty::cast(std::string(layout.name).c_str(), w, shape)),
                        original_of(w, shape))
                  .words == "fine");
}

TEST_CASE("stacks of matrices with a scale each, parts of fused ones, and scales of columns") {
    const Shape shape{.rows = 600, .cols = 64};  // three of 200 rows: no scale's rows are in one band
    const Values w = faulty::weights(7, shape);
    Values scales(3);
    faulty::Bytes codes(w.size());
    for (std::size_t e = 0; e < 3; ++e) {
        const auto part = std::span(w).subspan(e * 200 * 64, std::size_t{200} * 64);
        scales[e] = amax(part) / 448;
        encode(find_format("e4m3"), part, std::span(codes).subspan(e * 200 * 64, part.size()),
               {.scale = 1 / scales[e]});
    }
    const auto stack = [&](const Values& s) {
        return File{{"experts.weight", {"F8_E4M3", {3, 200, 64}, codes}},
                    {"experts.weight_scale", faulty::f32(s, {3, 1, 1})}};
    };
    const File original = {{"experts.weight", faulty::bf16(w, {3, 200, 64})}};
    CHECK(diagnosed(stack(scales), original).words == "fine");
    Values bad = scales;
    for (float& scale : bad) scale = 1 / scale;
    CHECK(diagnosed(stack(bad), original).words == "scale is the inverse");
    CHECK(diagnosed(stack({1, 1, 1}), original).words == "scale lost");

    const faulty::Weight q = faulty::cast("e4m3-row", Values(w.begin(), w.begin() + 400 * 64), {400, 64});
    File parts, fused = {{"a.qkv_proj.weight", faulty::bf16(w, {600, 64})}};
    faulty::add(parts, "a.q_proj", q);
    faulty::add(parts, "a.k_proj",
                faulty::cast("e4m3-row", Values(w.begin() + 400 * 64, w.begin() + 500 * 64), {100, 64}));
    faulty::add(parts, "a.v_proj",
                faulty::cast("e4m3-row", Values(w.begin() + 500 * 64, w.end()), {100, 64}));
    const Scratch scratch;
    const Verification all = verified(scratch, parts, fused);
    CHECK(all.tensors.size() == 3);
    CHECK(all.faults() == 0);
    std::swap(parts["a.k_proj.weight"], parts["a.v_proj.weight"]);
    std::swap(parts["a.k_proj.weight_scale"], parts["a.v_proj.weight_scale"]);
    const Verification swapped = verified(scratch, parts, fused);
    CHECK(swapped.tensors[0].diagnosis->words == "is another tensor: a.v_proj.weight");
    CHECK(swapped.faults() == 2);
}

TEST_CASE("the heads of a rotary order are those of the configuration") {
    const Scratch scratch;
    const Shape shape{.rows = 192, .cols = 64};
    const Values w = faulty::weights(8, shape);
    const File model = file_of(faulty::cast("e4m3-row", faulty::rope(w, 6, shape), shape));
    CHECK(verified(scratch, model, original_of(w, shape)).tensors[0].diagnosis->words == "none of these");
    write_file(scratch.path / "config.json",
               std::as_bytes(std::span(std::string_view(
                   R"({"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 32})"))));
    CHECK(verified(scratch, model, original_of(w, shape)).tensors[0].diagnosis->fault == "rotary");
    for (const RowOrder order : {RowOrder::to_pairs, RowOrder::to_halves}) {
        const RowOrder back = order == RowOrder::to_pairs ? RowOrder::to_halves : RowOrder::to_pairs;
        for (std::size_t row = 0; row < 96; ++row)
            CHECK(source_row(back, 32, source_row(order, 32, row)) == row);
    }
    CHECK(source_row(RowOrder::to_pairs, 8, 9) == 12);  // 8 12 9 13 10 14 11 15
}

TEST_CASE("a verification has the same numbers on one thread and on three") {
    const Shape shape{.rows = 1024, .cols = 512};
    const Values w = faulty::weights(9, shape);
    faulty::Weight bad = faulty::cast("e4m3-block128", w, shape);
    bad.scales[3] *= 8;
    std::vector<std::string> sentences;
    std::vector<double> numbers;
    for (const int threads : {1, 3}) {
        set_threads(threads);
        const Diagnosis found = diagnosed(file_of(bad), original_of(w, shape));
        CHECK(found.words == "local: 1 of 32 scales");
        for (const double number : {found.rel_l2, found.mended, found.limit}) numbers.push_back(number);
    }
    set_threads(0);
    for (std::size_t i = 0; i < 3; ++i) CHECK(numbers[i] == numbers[3 + i]);
}

TEST_CASE("what asks between the parts of a verification ends it inside a tensor") {
    const Scratch scratch;
    const Shape shape{.rows = 1024, .cols = 512};
    const Values w = faulty::weights(10, shape);
    faulty::write_tensors(scratch.path / "model.safetensors", file_of(faulty::cast("nvfp4", w, shape)));
    faulty::write_tensors(scratch.path / "original.safetensors", original_of(w, shape));
    const TensorStore model(scratch.path / "model.safetensors"),
        original(scratch.path / "original.safetensors");
    const Verifier verifier(model, original);
    int asked = 0;
    const AskBetween ask([&] {
        if (++asked == 5) throw Cancelled();
    });
    CHECK_THROWS_AS(static_cast<void>(verifier.diagnose(*model.find("proj.weight_packed"))), Cancelled);
}

TEST_CASE("every fault that is named has its words, and every hypothesis is one of them") {
    for (const Hypothesis& each : hypotheses())
        CHECK(std::ranges::count(faults(), each.fault, &Fault::id) == 1);
    for (const Fault& each : faults()) {
        CHECK(std::ranges::count(faults(), each.id, &Fault::id) == 1);
        CHECK_FALSE(each.words.empty());
    }
    CHECK(faults().back().id == "none");
}

TEST_CASE("MX files whose scales follow any rule in use are fine") {
    const Shape shape{.rows = 256, .cols = 256};
    // An amax of 1.9 times a power of two in each block: floor clips it, up has twice the scale.
    Values w = faulty::weights(11, shape);
    for (std::size_t at = 0; at < w.size(); at += 32) {
        const auto block = std::span(w).subspan(at, 32);
        const float wanted = 1.9F * std::exp2(std::floor(std::log2(amax(block))));
        *std::ranges::max_element(block, {}, [](float x) { return std::fabs(x); }) = wanted;
    }
    w = faulty::to_bf16(w);
    const struct {
        const char* layout;
        float max;
        int exponent;  // of max
    } kinds[] = {{"mxfp8", 448, 8}, {"mxfp4", 6, 2}};
    for (const auto& kind : kinds)
        for (const bool floor : {false, true}) {
            CAPTURE(kind.layout);
            CAPTURE(floor);
            faulty::Weight weight = faulty::cast(kind.layout, w, shape);
            const FormatInfo& format = find_format(weight.layout->format);
            for (std::size_t block = 0; block < weight.scales.size(); ++block) {
                const auto values = std::span(w).subspan(block * 32, 32);
                const float largest = amax(values);
                weight.scales[block] =
                    floor ? std::exp2(std::floor(std::log2(largest)) - static_cast<float>(kind.exponent))
                          : std::exp2(std::ceil(std::log2(largest / kind.max)));
                encode(format, values, std::span(weight.codes).subspan(block * 32, 32),
                       {.scale = 1 / weight.scales[block]});
            }
            CHECK(diagnosed(file_of(weight), original_of(w, shape)).words == "fine");
        }
}

TEST_CASE(
    "few scales, rows and tiles that are wrong are named, also where the whole is as near as it should be") {
    const Shape shape{.rows = 1024, .cols = 1024};
    const Values w = faulty::weights(12, shape);
    const File original = original_of(w, shape);
    for (const char* layout : {"e4m3-row", "e4m3-block128", "mxfp8", "mxfp4", "nvfp4"})
        for (const float factor : {0.0625F, 4.F}) {
            CAPTURE(layout);
            CAPTURE(factor);
            faulty::Weight bad = faulty::cast(layout, w, shape);
            CHECK(diagnosed(file_of(bad), original).words == "fine");
            const std::size_t at = bad.scales.size() / 3;
            bad.scales[at] *= factor;
            const Diagnosis found = diagnosed(file_of(bad), original);
            CHECK(found.fault == "local-scales");
            CHECK(found.words.starts_with("local: 1 of "));
            CHECK(found.mended <= found.limit);
        }
    faulty::Weight row = faulty::cast("e4m3-block128", w, shape), tile = row;
    // The smallest row: of a larger one the whole is off too.
    const auto squares = [&](std::size_t r) {
        double sum = 0;
        for (const float x : std::span(w).subspan(r * 1024, 1024)) sum += std::pow(static_cast<double>(x), 2);
        return sum;
    };
    std::size_t least = 0;
    for (std::size_t r = 1; r < 1024; ++r)
        if (squares(r) < squares(least)) least = r;
    std::fill_n(row.codes.begin() + static_cast<std::ptrdiff_t>(least * 1024), 1024, std::uint8_t{0});
    CHECK(diagnosed(file_of(row), original).words == "local: 1 of 1,024 rows");
    for (std::size_t r = 64; r < 128; ++r)
        std::fill_n(tile.codes.begin() + static_cast<std::ptrdiff_t>(r * 1024 + 192), 64, std::uint8_t{0});
    CHECK(diagnosed(file_of(tile), original).words == "local: 1 of 256 tiles");
    Values plain = w;
    std::fill_n(plain.begin() + 5 * 1024, 1024, 0.F);
    CHECK(diagnosed(original_of(plain, shape), original).is_fault());
    // 20 % off is less than half a binade.
    faulty::Weight little = faulty::cast("e4m3-block128", w, shape);
    for (std::size_t i = 0; i < 12; ++i) little.scales[i] *= 1.25F;
    CHECK(diagnosed(file_of(little), original).words == "local: 12 of 64 scales");
}

TEST_CASE("tensors that one side does not have, or has with another shape, are faults with a row each") {
    const Shape shape{.rows = 64, .cols = 128};
    const Values w = faulty::weights(15, shape);
    File model, original;
    for (const char* name : {"a", "b", "c"}) {
        if (*name != 'c') faulty::add(model, name, faulty::cast("e4m3-row", w, shape));
        if (*name != 'b') original[std::string(name) + ".weight"] = faulty::bf16(w, {shape.rows, shape.cols});
    }
    faulty::add(model, "d", faulty::cast("e4m3-row", w, shape));
    original["d.weight"] = faulty::bf16(w, {shape.cols, shape.rows});
    const Scratch scratch;
    const Verification all = verified(scratch, model, original);
    REQUIRE(all.tensors.size() == 4);
    CHECK(all.tensors[0].verdict() == VerifiedAs::fine);
    CHECK(all.tensors[1].sentence() == "not in the original");
    CHECK(all.tensors[2].tensor->name == "d.weight");
    CHECK(all.tensors[2].sentence() == "its shape is (64, 128), in the original (128, 64)");
    CHECK(all.tensors[3].tensor->name == "c.weight");
    CHECK(all.tensors[3].sentence() == "in the original, not in the model");
    CHECK(all.faults() == 3);
    CHECK(all.foot() == "4 tensors: 1 fine, 3 with a fault");
    // Two names that differ by their prefix alone.
    original = {{"a.weight", original["a.weight"]},
                {"model.a.weight", faulty::bf16(Values(w.size()), {64, 128})}};
    const Verification two = verified(
        scratch, {{"a.weight", model["a.weight"]}, {"a.weight_scale", model["a.weight_scale"]}}, original);
    REQUIRE(two.tensors.size() == 2);
    CHECK(two.tensors[0].verdict() == VerifiedAs::fine);
    CHECK(two.tensors[1].tensor->name == "model.a.weight");
}

TEST_CASE("what is not read or not compared is neither fine nor a fault, and its original is not missing") {
    const Shape shape{.rows = 64, .cols = 128};
    const Values w = faulty::weights(16, shape);
    File model,
        original = {{"b.weight", faulty::bf16(w, {64, 128})}, {"a.weight", faulty::bf16(w, {64, 128})}};
    faulty::add(model, "a", faulty::cast("e4m3-row", w, shape));
    model["b.qweight"] = {"I32", {16, 64}, faulty::Bytes(16 * 64 * 4)};
    model["b.scales"] = faulty::f32(Values(64, 1.F), {1, 64});
    const Scratch scratch;
    Verification all = verified(scratch, model, original);
    REQUIRE(all.tensors.size() == 2);
    CHECK(all.tensors[1].verdict() == VerifiedAs::not_read);
    CHECK(all.foot() == "2 tensors: 1 fine, 0 with a fault, 1 not read");
    // A stack whose matrices are the other way round in the original.
    model.erase("b.qweight"), model.erase("b.scales");
    model["experts.down_proj"] = faulty::bf16(w, {2, 32, 128});
    original.erase("b.weight");
    for (const char* e : {"0", "1"})
        original[std::string("experts.") + e + ".down_proj.weight"] = faulty::bf16(Values(4096), {128, 32});
    all = verified(scratch, model, original);
    REQUIRE(all.tensors.size() == 2);
    CHECK(all.tensors[1].verdict() == VerifiedAs::not_compared);
    CHECK(all.foot() == "2 tensors: 1 fine, 0 with a fault, 1 not compared");
}

TEST_CASE("codes that become 0 under a scale of 0 are a fault with and without an original, zeros are not") {
    const Shape shape{.rows = 64, .cols = 128};
    Values w = faulty::weights(17, shape);
    for (std::size_t c = 0; c < 128; ++c) w[3 * 128 + c] = w[5 * 128 + c] = 0;
    faulty::Weight weight = faulty::cast("e4m3-row", w, shape);
    weight.scales[5] = 0;
    const Scratch scratch;
    const auto alone = [&] {
        faulty::write_tensors(scratch.path / "model.safetensors", file_of(weight));
        return verify(std::make_shared<TensorStore>(scratch.path / "model.safetensors"), nullptr);
    };
    CHECK(alone().tensors[0].sentence() == "among its scales: 1 zero");
    CHECK(alone().faults() == 0);
    CHECK(alone().foot() ==
          "1 tensor: 1 with nothing wrong found, 0 with a fault; without an original the values are not "
          "checked");
    weight.codes[5 * 128 + 1] = 0x81, weight.codes[5 * 128 + 2] = 0x80;  // -2^-9 and -0
    const Verification bad = alone();
    CHECK(bad.tensors[0].sentence() ==
          "1 code that is not 0 becomes 0 under its scale; among its scales: 1 zero");
    CHECK(bad.faults() == 1);
    CHECK(verified(scratch, file_of(weight), original_of(w, shape)).faults() == 1);
}

TEST_CASE("a plain cast is fine where no value needs a scale, and named where some do") {
    const Shape shape{.rows = 256, .cols = 256};
    Values w(shape.rows * shape.cols);
    Rng rng(18, 1);
    for (float& value : w) value = rng.normal();
    w = faulty::to_bf16(w);
    const auto found = [&] {
        faulty::Bytes codes(w.size());
        encode(find_format("e4m3"), w, std::span(codes));
        const Scratch scratch;
        return verified(scratch, {{"proj.weight", {"F8_E4M3", {256, 256}, codes}}}, original_of(w, shape));
    };
    CHECK_FALSE(found().tensors[0].is_fault());
    CHECK(found().tensors[0].diagnosis->words == "fine");
    CHECK(found().tensors[0].sentence().ends_with("; codes without a scale, none found"));
    for (float& value : w) value /= 256;
    CHECK(found().tensors[0].diagnosis->words == "cast without a scale, which it needs");
}

TEST_CASE("two sets of scales for the same codes are said") {
    const Shape shape{.rows = 128, .cols = 256};
    const Values w = faulty::weights(19, shape);
    File model = file_of(faulty::cast("e4m3-block128", w, shape));
    model["proj.weight_scale"] = faulty::f32({1, 1}, {1, 2});
    const Scratch scratch;
    const Verification all = verified(scratch, model, original_of(w, shape));
    REQUIRE(all.tensors.size() == 1);
    CHECK(all.faults() == 0);
    CHECK(all.tensors[0].sentence().ends_with("; of two sets of scales the second one is not applied"));
}

TEST_CASE("values that are not finite, negated ones and scales that are no number are named") {
    const Shape shape;
    const Values w = faulty::weights(13, shape);
    const File original = original_of(w, shape);
    const faulty::Weight right = faulty::cast("e4m3-block128", w, shape);
    faulty::Weight bad = right;
    bad.codes[777] = 0x7F;
    const Diagnosis nan = diagnosed(file_of(bad), original);
    CHECK(nan.words == "1 value is NaN or Inf");
    CHECK(std::isinf(nan.rel_l2));
    CHECK(nan.mended < 0.03);
    Values values = w;
    values[3] = std::numeric_limits<float>::infinity(), values[9] = -values[3];
    CHECK(diagnosed(original_of(values, shape), original).words == "2 values are NaN or Inf");
    CHECK(diagnosed(original, original_of(values, shape)).words == "2 values of the original are NaN or Inf");
    CHECK(diagnosed(original_of(values, shape), original_of(values, shape)).words == "fine");
    values = w;
    for (float& value : values) value = -value;
    CHECK(diagnosed(original_of(values, shape), original).words == "all values are negated");
    bad = right;
    for (float& scale : bad.scales) scale *= -2;
    CHECK(diagnosed(file_of(bad), original).words == "all values are -2 times the right ones");
    bad.scales = right.scales;
    bad.scales[2] *= -1;
    CHECK(diagnosed(file_of(bad), original).words == "local: 1 of 16 scales");
    bad = faulty::cast("e4m3-tensor", w, shape);
    const auto with_scale = [&](float scale) {
        bad.scales = {scale};
        return diagnosed(file_of(bad), original).words;
    };
    CHECK(with_scale(std::numeric_limits<float>::quiet_NaN()) == "scale is NaN");
    CHECK(with_scale(std::numeric_limits<float>::infinity()) == "scale is Inf");
    CHECK(with_scale(0) == "scale is 0");
    CHECK(diagnosed(file_of(right), original_of(Values(w.size()), shape)).words ==
          "the original is 0 everywhere");
}

TEST_CASE("codes that were transposed without their scales are named") {
    const Shape shape{.rows = 384, .cols = 384};
    const Values w = faulty::weights(14, shape);
    faulty::Weight bad = faulty::cast("e4m3-block128", w, shape);
    faulty::Bytes codes(bad.codes.size());
    for (std::size_t r = 0; r < shape.rows; ++r)
        for (std::size_t c = 0; c < shape.cols; ++c)
            codes[c * shape.rows + r] = bad.codes[r * shape.cols + c];
    bad.codes = codes;
    CHECK(diagnosed(file_of(bad), original_of(w, shape)).words == "weight transposed, its scales not");
}
