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
