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
    CHECK(same.sentence() == "fine; 0");
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
    CHECK(all.unmatched_there.empty());
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
