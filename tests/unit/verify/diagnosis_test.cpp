// The faults that loaders and exporters of quantised checkpoints make, each in a file of its own.
#include "core/verify/diagnosis.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/verify/verify.h"
#include "faulty_files.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

Diagnosis diagnosed(const Scratch& scratch, const faulty::Case& each, faulty::Shape shape) {
    faulty::write_case(scratch.path, each, shape);
    const TensorStore model(scratch.path / "model.safetensors"),
        original(scratch.path / "original.safetensors");
    const Verifier verifier(model, original);
    for (const StoredTensor& tensor : model.tensors())
        if (tensor.is_judged(true) && tensor.name.starts_with("proj"))
            if (const auto found = verifier.diagnose(tensor)) return *found;
    FAIL("not compared");
    return {};
}

// Names each of the 58 cases; returns how many were right.
int named_right(const std::vector<faulty::Case>& cases, faulty::Shape shape) {
    const Scratch scratch;
    int right = 0;
    for (const faulty::Case& each : cases) {
        CAPTURE(each.name);
        const Diagnosis found = diagnosed(scratch, each, shape);
        CHECK(found.words == each.words);
        CHECK(found.is_fault() == (each.words != "fine"));
        right += found.words == each.words;
    }
    return right;
}

faulty::Values trained(const TensorStore& store, const std::string& name) {
    const StoredTensor* const tensor = store.find(name);
    REQUIRE(tensor != nullptr);
    faulty::Values out(tensor->matrix().rows * tensor->matrix().cols);
    store.read_rows(*tensor, 0, out);
    return faulty::to_bf16(out);
}

// gate_up of four blocks (384 x 64 each) and the transposed down of four (64 x 192) side by side: 384 x 384.
faulty::Values trained_square(const TensorStore& store) {
    constexpr std::size_t kSide = 384, kWide = 64, kDown = 192;
    faulty::Values out(kSide * kSide);
    for (std::size_t block = 0; block < 4; ++block) {
        const std::string name = "blocks." + std::to_string(block + 1) + ".";
        const faulty::Values up = trained(store, name + "gate_up.weight"),
                             down = trained(store, name + "down.weight");
        for (std::size_t r = 0; r < kSide; ++r)
            for (std::size_t c = 0; c < kWide; ++c) out[r * kSide + block * kWide + c] = up[r * kWide + c];
        for (std::size_t r = 0; r < kDown; ++r)
            for (std::size_t c = 0; c < kWide; ++c)
                out[(block % 2 * kDown + r) * kSide + (4 + block / 2) * kWide + c] = down[c * kDown + r];
    }
    return out;
}

const std::string kModels = FP8LAB_SOURCE "/assets/models/";

}  // namespace

TEST_CASE("58 faults and healthy files of five seeds each are named: 290 of 290") {
    int right = 0;
    const faulty::Shape shape;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(seed);
        const auto cases = faulty::cases_of(faulty::weights(seed), faulty::weights(seed + 1000), shape, seed);
        REQUIRE(cases.size() == 58);
        right += named_right(cases, shape);
    }
    CHECK(right == 290);
}

TEST_CASE("the same 58 of weights that were trained, beside those of another step of the training") {
    const TensorStore after(kModels + "transformer-600.safetensors"),
        before(kModels + "transformer-0.safetensors");
    const faulty::Shape square{.rows = 384, .cols = 384};
    const auto cases = faulty::cases_of(trained_square(after), trained_square(before), square, 1);
    REQUIRE(cases.size() == 58);
    CHECK(named_right(cases, square) == 58);
}

TEST_CASE("the 41 of the layouts of each matrix of a trained transformer") {
    const TensorStore after(kModels + "transformer-600.safetensors"),
        before(kModels + "transformer-0.safetensors");
    int right = 0, all = 0;
    for (const int block : {1, 4})
        for (const std::string kind : {"qkv", "out", "gate_up", "down"}) {
            const std::string name = "blocks." + std::to_string(block) + "." + kind + ".weight";
            CAPTURE(name);
            const MatrixShape shape = after.find(name)->matrix();
            faulty::Maker maker{.w = trained(after, name),
                                .other = trained(before, name),
                                .shape = {.rows = shape.rows, .cols = shape.cols}};
            for (const CodeLayout& layout : code_layouts())
                faulty::add_of_layout(maker, std::string(layout.name).c_str());
            all += static_cast<int>(maker.cases.size());
            right += named_right(maker.cases, maker.shape);
        }
    CHECK(all == 8 * 41);
    CHECK(right == all);
}
