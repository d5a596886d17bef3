// A format for each GEMM: fprop_in, dgrad_in, wgrad_in, colsrc.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/bounded_file.h"
#include "core/nn/models/mlp/tensors.h"
#include "core/nn/recipe_casts.h"
#include "core/tensors/safetensors.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainSpec spec_of(const std::string& recipes, const char* model = "mlp") {
    TrainOptions options;
    options.model = model;
    options.recipes = recipes;
    options.steps = 40;
    options.batch = model == std::string("mlp") ? 48 : 2;
    if (model == std::string("mlp"))
        options.layers = std::vector{16, 32, 32, 2};
    else
        options.sizes = {{"d", 32}, {"blocks", 1}, {"heads", 2}, {"ffn", 64}, {"context", 32}};
    return make_train_spec(options);
}

std::vector<StepRecord> records_of(Trainer& trainer, int steps) {
    trainer.step(steps);
    return trainer.snapshot().arms[0].records;
}
std::vector<StepRecord> records_of(const std::string& recipe, int steps, const char* model = "mlp") {
    return records_of(*make_cpu_trainer(spec_of(recipe, model)), steps);
}

// All bytes of a checkpoint but its metadata.
std::vector<std::pair<std::string, std::vector<float>>> state_of(Trainer& trainer) {
    const Scratch scratch;
    trainer.save(scratch.path);
    const auto files = checkpoints_to_load(scratch.path);
    const SafeTensors file = parse_safetensors(read_bytes(files[0]), "checkpoint");
    std::vector<std::pair<std::string, std::vector<float>>> out;
    for (const auto& [name, tensor] : file.tensors) out.emplace_back(name, tensor.values);
    return out;
}

Matrix<float> normal(std::size_t rows, std::size_t cols) {
    Matrix<float> out(rows, cols);
    Rng(7).fill_normal(out.values);
    return out;
}

const MlpTensor kX2{TensorClass::x, 2}, kW2{TensorClass::w, 2}, kDy2{TensorClass::dy, 2};

}  // namespace

TEST_CASE("a recipe whose GEMMs are given its own name is that recipe, to the byte") {
    for (const Recipe& row : recipes()) {
        const std::string name = row.name;
        CAPTURE(name);
        const std::string same = name + ":fprop_in=" + name + ":dgrad_in=" + name + ":wgrad_in=" + name;
        for (const char* model : {"mlp", "transformer"}) {
            auto plain = make_cpu_trainer(spec_of(name, model)),
                 given = make_cpu_trainer(spec_of(same, model));
            const auto expected = records_of(*plain, 6), got = records_of(*given, 6);
            for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[i].loss == expected[i].loss);
            CHECK(state_of(*given) == state_of(*plain));
        }
    }
    const auto history = records_of("delayed:history=3:fwd=e5m2:wgrad_in=delayed", 8),
               plain = records_of("delayed:history=3:fwd=e5m2", 8);
    for (std::size_t i = 0; i < plain.size(); ++i) CHECK(history[i].loss == plain[i].loss);
}

TEST_CASE("an input reaches its own GEMM and no other") {
    const auto amaxes = [](const StepRecord& record, TensorClass of) {
        std::vector<float> out;
        for (std::size_t i = 0; i < record.tensors.size(); ++i)
            if (i % 3 == static_cast<std::size_t>(of)) out.push_back(record.tensors[i].amax);
        return out;
    };
    const auto first = [](const std::string& recipe) { return records_of(recipe, 2); };
    const auto bf16 = first("bf16"), fp8 = first("current");
    CHECK(bf16[0].loss != fp8[0].loss);
    for (const char* in_fprop : {"bf16:fprop_in=current", "current:dgrad_in=bf16:wgrad_in=bf16"}) {
        const auto records = first(in_fprop);
        CHECK(records[0].loss == fp8[0].loss);  // the forward pass is that of FP8
        CHECK(amaxes(records[0], TensorClass::dy) != amaxes(fp8[0], TensorClass::dy));
    }
    for (const char* in_dgrad : {"bf16:dgrad_in=current", "current:fprop_in=bf16:wgrad_in=bf16"}) {
        const auto records = first(in_dgrad);
        CHECK(records[0].loss == bf16[0].loss);
        CHECK(amaxes(records[0], TensorClass::dy) != amaxes(bf16[0], TensorClass::dy));
    }
    for (const char* in_wgrad : {"bf16:wgrad_in=current", "current:fprop_in=bf16:dgrad_in=bf16"}) {
        const auto records = first(in_wgrad);
        CHECK(records[0].loss == bf16[0].loss);
        CHECK(amaxes(records[0], TensorClass::dy) == amaxes(bf16[0], TensorClass::dy));
        CHECK(records[1].loss != bf16[1].loss);  // the update is not
    }
}

TEST_CASE("each GEMM reads the cast of its own format, and delayed scales are one for each") {
    const Matrix<float> m = normal(32, 48);
    const auto operand = [&](const char* text, MlpTensor id, Along along) {
        RecipeCasts casts(parse_recipe(text), mlp_plan(std::vector<int>(3, 8)), 1);
        casts.begin_step(0, {});
        casts.operand(id, Along::cols, m);
        return casts.operand(id, along, m).values;
    };
    CHECK(operand("current:wgrad_in=e5m2", kX2, Along::rows) ==
          operand("current:fwd=e5m2", kX2, Along::rows));
    CHECK(operand("current:wgrad_in=e5m2", kX2, Along::cols) == operand("current", kX2, Along::cols));
    CHECK(operand("current:dgrad_in=bf16", kW2, Along::rows) == operand("bf16", kW2, Along::rows));
    CHECK(operand("rowwise:wgrad_in=mxfp8", kDy2, Along::rows) == operand("mxfp8", kDy2, Along::rows));
    CHECK(operand("nvfp4-te:fprop_in=bf16", kX2, Along::rows) == operand("nvfp4-te", kX2, Along::rows));
    RecipeCasts casts(parse_recipe("delayed:wgrad_in=e4m3"), mlp_plan(std::vector<int>(3, 8)), 1);
    casts.begin_step(0, {});
    for (const Along along : {Along::cols, Along::rows}) casts.operand(kDy2, along, m);
    casts.end_step();
    CHECK(casts.is_split(kDy2));
    CHECK_FALSE(casts.is_split(kX2));
    const float amax = *std::ranges::max_element(m.values, {}, [](float v) { return std::fabs(v); });
    CHECK(casts.delayed(kDy2, Along::cols)->scale() == 57344 / std::fabs(amax));
    CHECK(casts.delayed(kDy2, Along::rows)->scale() == 448 / std::fabs(amax));
}

TEST_CASE("colsrc=rowwise casts the transposed operand from the codes along rows") {
    const Matrix<float> m = normal(64, 48);
    for (const std::string text : {"rowwise", "mxfp8", "nvfp4", "rowwise:wgrad_in=mxfp8"}) {
        CAPTURE(text);
        for (const bool fprop_first : {true, false}) {  // dy of layer 1 has no dgrad
            RecipeCasts casts(parse_recipe(text + ":colsrc=rowwise"), mlp_plan(std::vector<int>(3, 8)), 1),
                once(parse_recipe(text), mlp_plan(std::vector<int>(3, 8)), 1),
                twice(parse_recipe(text), mlp_plan(std::vector<int>(3, 8)), 1);
            for (RecipeCasts* each : {&casts, &once, &twice}) each->begin_step(0, {});
            if (fprop_first)
                CHECK(casts.operand(kX2, Along::cols, m).values == once.operand(kX2, Along::cols, m).values);
            const Matrix<float> codes = once.operand(kX2, Along::cols, m);
            const std::vector<float> expected = twice.operand(kX2, Along::rows, codes).values,
                                     original = twice.operand(kX2, Along::rows, m).values;
            CHECK(casts.operand(kX2, Along::rows, m).values == expected);
            // Scales that are powers of two leave codes as they are.
            if (text != "mxfp8") CHECK(expected != original);
        }
    }
}

TEST_CASE("a run with inputs resumes to the byte, and an old checkpoint fills both scales") {
    for (const char* recipe : {"delayed:wgrad_in=e4m3", "delayed:fprop_in=bf16:dgrad_in=current",
                               "bf16:dgrad_in=delayed", "nvfp4-te:wgrad_in=bf16:colsrc=rowwise"})
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            CAPTURE(recipe);
            CAPTURE(seed);
            TrainSpec spec = spec_of(recipe);
            spec.seed = seed;
            // A default for arms that name none is not that of an input's recipe, whose history stays as long as it was.
            spec.arms[0] = parse_recipe(recipe, {.history = 64});
            const Scratch scratch;
            auto whole = make_cpu_trainer(spec);
            records_of(*whole, 12);
            whole->save(scratch.path);
            auto resumed = make_cpu_trainer(spec);
            resumed->load(scratch.path);
            const auto expected = records_of(*whole, 8), got = records_of(*resumed, 8);
            for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[i].loss == expected[i].loss);
            CHECK(state_of(*resumed) == state_of(*whole));
        }
    // A BF16 run goes on with a format for each GEMM, and back: weights and moments are there, scales begin.
    const Scratch folder;
    auto bf16 = make_cpu_trainer(spec_of("bf16"));
    records_of(*bf16, 12);
    bf16->save(folder.path / "bf16");
    auto fp8 = make_cpu_trainer(spec_of("delayed:wgrad_in=bf16"));
    fp8->load(folder.path / "bf16");
    CHECK(records_of(*fp8, 8).back().loss == doctest::Approx(records_of(*bf16, 8).back().loss).epsilon(0.05));
    fp8->save(folder.path / "fp8");
    auto back = make_cpu_trainer(spec_of("bf16"));
    back->load(folder.path / "fp8");
    CHECK(records_of(*back, 8).back().loss ==
          doctest::Approx(records_of(*bf16, 8).back().loss).epsilon(0.05));
    std::set<std::string> names;
    auto split = make_cpu_trainer(spec_of("delayed:wgrad_in=e4m3"));
    records_of(*split, 3);
    for (const auto& [name, values] : state_of(*split)) names.insert(name);
    for (const char* name : {"scale.x2", "scale.w2", "scale.dy2.dgrad", "scale.dy2.wgrad",
                             "history.dy2.wgrad", "scale_age.dy3.dgrad"})
        CHECK(names.contains(name));
    CHECK_FALSE(names.contains("scale.dy2"));
    CHECK_FALSE(names.contains("scale.x2.fprop"));

    const Scratch scratch;
    auto old = make_cpu_trainer(spec_of("delayed"));
    records_of(*old, 5);
    old->save(scratch.path);
    split = make_cpu_trainer(spec_of("delayed:wgrad_in=e4m3"));
    split->load(scratch.path);
    std::vector<float> dgrad, wgrad, before;
    for (const auto& [name, values] : state_of(*split)) {
        if (name == "history.dy2.dgrad") dgrad = values;
        if (name == "history.dy2.wgrad") wgrad = values;
    }
    for (const auto& [name, values] : state_of(*old))
        if (name == "history.dy2") before = values;
    CHECK_FALSE(before.empty());
    CHECK(dgrad == before);
    CHECK(wgrad == before);
}

TEST_CASE("inputs that say nothing are refused, and texts come back") {
    for (const char* bad : {"nvfp4:fprop_in=e4m3", "bf16:wgrad_in=e5m2", "current:dgrad_in=fp8",
                            "current:dgrad_in=e2m1", "current:colsrc=rowwise", "current:wgrad_in="}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_recipe(bad), Error);
    }
    for (const char* text : {"current:fprop_in=bf16:dgrad_in=e5m2", "rowwise:colsrc=rowwise:wgrad_in=bf16",
                             "nvfp4:dgrad_in=mxfp8", "bf16:fprop_in=nvfp4-te"})
        CHECK(recipe_text(parse_recipe(text)) == text);
    CHECK(parse_recipe("current:wgrad=bf16").inputs == parse_recipe("current").inputs);  // the type of dW
    CHECK_FALSE(has_inputs(wide_recipe(parse_recipe("bf16:fprop_in=current"))));
}
