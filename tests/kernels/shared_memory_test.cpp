// The memory of a transformer's arm: what it allocates is what its list says, and what shares memory is not missed.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "kernels/arm/batches.h"
#include "kernels/checks/probe.h"
#include "kernels/layers/launch.h"
#include "kernels/transformer/arm.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/training.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using fp8lab::test::device;

namespace {

// The stand-in for the runtime counts bytes; a GPU takes pages.
#ifdef FP8LAB_SIMULATOR
constexpr bool kCountsBytes = true;
#else
constexpr bool kCountsBytes = false;
#endif

struct Case {
    std::string recipe;
    int context = 16, batch = 2;
    double clip = 0;
    bool tied = false;
    StateType state = StateType::fp32;
    int d = 32, ffn = 48;
    bool evaluates = false;  // 32 forward passes: not in every case
};

TrainSpec spec_of(const Case& c) {
    TrainOptions options;
    options.model = "transformer";
    options.batch = c.batch;
    options.steps = 4;
    options.recipes = c.recipe;
    options.sizes = {{"context", c.context}, {"d", c.d},      {"heads", 2},   {"ffn", c.ffn},
                     {"blocks", 2},          {"kv-heads", 1}, {"tie", c.tied}};
    options.clip = c.clip;
    TrainSpec spec = make_train_spec(options);
    spec.state = c.state;
    return spec;
}

const std::vector<Case> kCases = {
    {.recipe = "fp32", .evaluates = true},
    {"bf16"},
    {.recipe = "bf16", .context = 32, .batch = 1, .clip = 1},
    {.recipe = "bf16", .tied = true, .evaluates = true},
    {.recipe = "bf16", .state = StateType::bf16},
    {.recipe = "bf16", .tied = true, .state = StateType::bf16},
    {"bf16:wgrad=bf16"},
    {.recipe = "delayed", .evaluates = true},
    {.recipe = "delayed", .context = 48, .batch = 1, .clip = 0.5, .tied = true},
    {"delayed:wide=1.down"},
    {"delayed:master=none"},
    {"delayed:act=smooth:wgrad=fp32"},
    {.recipe = "delayed:scope=attn", .context = 8, .batch = 4},
    {"current"},
    {"rowwise"},
    {.recipe = "block128", .evaluates = true},
    // A cast for each GEMM: of x and dy, of w, in place, with scales of their own.
    {.recipe = "delayed:wgrad_in=bf16", .evaluates = true},
    {"current:wgrad_in=e4m3"},
    {.recipe = "delayed:fprop_in=bf16", .clip = 1, .tied = true},
    {"rowwise:dgrad_in=bf16"},
    {.recipe = "bf16:dgrad_in=block128:wgrad_in=rowwise", .evaluates = true},
    {"delayed:wgrad_in=block128:scope=head"},
    {"mxfp8"},
    {"nvfp4-te"},
    {.recipe = "nvfp4", .tied = true, .evaluates = true}};

struct Trained {
    std::vector<ArmRecord> records;
    Evaluation evaluation;
    ArmCheckpoint end;
    std::size_t allocated = 0, listed = 0;
    bool shares = false;
};

EngineChoice engine_of(const TrainSpec& spec) {
    return choose_engine(spec.arms[0], [](const GemmSpec& gemm) {
        return refusal_of(device()->lt, gemm, device()->stream.get());
    });
}

// Three steps, the last two in one launch, with an evaluation behind the first if wanted.
Trained train(const TrainSpec& spec, Sharing sharing, bool evaluates) {
    const cudaStream_t stream = device()->stream.get();
    Batches batches(spec);
    TransformerArm arm(spec, spec.arms[0], engine_of(spec), device()->lt, batches.rings(false), stream, {},
                       {}, sharing);
    Trained out;
    out.allocated = arm.memory_bytes();
    out.listed = arm.memory().requested_bytes();
    out.shares = arm.memory().shares();
    for (int step = 0; step < 3; ++step) batches.stage(step, 2e-3, 1, stream);
    arm.enqueue(stream, 1, true, {});
    device()->stream.wait();  // an evaluation takes the place of a batch that is done with
    if (evaluates) out.evaluation = arm.evaluate(batches, 1, stream);
    for (int step = 0; step < 3; ++step) batches.stage(step, 2e-3, 1, stream);  // the evaluation took a place
    arm.enqueue(stream, 2, true, {});
    arm.read_back(0, 3, stream);
    device()->stream.wait();
    for (int step = 0; step < 3; ++step) out.records.push_back(arm.record(step));
    out.end = arm.checkpoint();
    return out;
}

template <class T>
std::vector<std::uint32_t> bits(const std::vector<T>& values) {
    std::vector<std::uint32_t> out;
    for (const auto v : values) out.push_back(std::bit_cast<std::uint32_t>(v));
    return out;
}

void check_same(const Trained& a, const Trained& b) {
    for (std::size_t i = 0; i < a.records.size(); ++i) {
        const StepResult &x = a.records[i].result, &y = b.records[i].result;
        CHECK(x.loss == y.loss);
        CHECK(x.correct == y.correct);
        CHECK(x.alive == y.alive);
        CHECK(x.alive == 1);
        for (std::size_t t = 0; t < a.records[i].tensors.size(); ++t) {
            const TensorResult &s = a.records[i].tensors[t], &u = b.records[i].tensors[t];
            CAPTURE(t);
            CHECK(s.amax_bits == u.amax_bits);
            CHECK(s.scale == u.scale);
            CHECK(s.underflow == u.underflow);
            CHECK(s.overflow == u.overflow);
            CHECK(s.sums.signal == u.sums.signal);
            CHECK(s.sums.noise == u.sums.noise);
        }
    }
    CHECK(a.evaluation.loss == b.evaluation.loss);
    REQUIRE(a.end.parameters.size() == b.end.parameters.size());
    for (std::size_t i = 0; i < a.end.parameters.size(); ++i) {
        CAPTURE(i);
        const ParameterCheckpoint &p = a.end.parameters[i], &q = b.end.parameters[i];
        CHECK(bits(p.values) == bits(q.values));
        CHECK(bits(p.moments.m) == bits(q.moments.m));
        CHECK(bits(p.moments.v) == bits(q.moments.v));
    }
}

}  // namespace

TEST_CASE("a transformer's arm allocates what is in its list, and shared memory changes no bit") {
    NEEDS_GPU();
    std::vector<Case> cases = kCases;
    if (!kCountsBytes)  // updates take long enough to run beside the backward pass
        for (const char* recipe : {"bf16", "delayed", "current", "block128"})
            for (const bool tied : {false, true})
                cases.push_back(
                    {.recipe = recipe, .context = 256, .batch = 8, .tied = tied, .d = 1024, .ffn = 2816});
    for (const Case& c : cases) {
        CAPTURE(c.recipe);
        CAPTURE(c.tied);
        CAPTURE(c.clip);
        const TrainSpec spec = spec_of(c);
        const Trained apart = train(spec, Sharing::none, c.evaluates),
                      shared = train(spec, Sharing::all, c.evaluates);
        CHECK_FALSE(apart.shares);
        CHECK(shared.shares);
        if (kCountsBytes) {
            CHECK(apart.allocated == apart.listed);
            CHECK(shared.allocated == shared.listed);
        }
        CHECK(shared.listed < apart.listed);
        check_same(apart, shared);
        // The logits of a head with weights of N(0, 0.02^2) over d values of mean square 1 are N(0, 0.02^2 d).
        const double expected = std::log(spec.vocabulary) + 0.02 * 0.02 * spec.sizes.at("d") / 2;
        CHECK(std::abs(shared.records[0].result.loss - expected) < 0.1);
    }
}

TEST_CASE("a measurement of the blocks alone finds its inputs again in every repeat") {
    NEEDS_GPU();
    const auto measured = [](const std::string& recipe, Sharing sharing) {
        const TrainSpec spec = spec_of({.recipe = recipe});
        Batches batches(spec);
        const cudaStream_t stream = device()->stream.get();
        batches.stage(0, 2e-3, 1, stream);
        TransformerArm arm(spec, spec.arms[0], engine_of(spec), device()->lt, batches.rings(false), stream,
                           {}, {}, sharing);
        arm.fill_block_inputs(stream);
        for (int i = 0; i < 3; ++i) arm.enqueue_blocks(stream, {});
        device()->stream.wait();
        std::vector<std::vector<std::uint32_t>> out;
        for (const ParameterCheckpoint& p : arm.checkpoint().parameters) {
            CHECK(std::ranges::all_of(p.values, [](float v) { return std::isfinite(v); }));
            out.push_back(bits(p.values));
            out.push_back(bits(p.moments.m));
        }
        return out;
    };
    for (const std::string recipe : {"bf16", "delayed", "rowwise"}) {
        CAPTURE(recipe);
        CHECK(measured(recipe, Sharing::all) == measured(recipe, Sharing::none));
    }
}

TEST_CASE("what shares memory is not offered for a view, weights are, and a small model offers all") {
    NEEDS_GPU();
    for (const Sharing sharing : {Sharing::all, Sharing::by_size}) {
        const TrainSpec spec = spec_of({"delayed"});
        const Batches batches(spec);
        const TransformerArm arm(spec, spec.arms[0], engine_of(spec), device()->lt, batches.rings(false),
                                 device()->stream.get(), {}, {}, sharing);
        for (std::size_t i = 0; i < arm.plan().tensors.size(); ++i) {
            CAPTURE(arm.plan().tensors[i].name);
            const bool weight = arm.plan().tensors[i].tensor == TensorClass::w;
            CHECK(arm.keeps({static_cast<std::uint16_t>(i)}) == (weight || sharing == Sharing::by_size));
        }
    }
}

TEST_CASE("a transformer that does not fit is refused before anything is allocated, with what would fit") {
    NEEDS_GPU();
    device();
    const auto free_bytes = [] {
        std::size_t available = 0, total = 0;
        check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
        return available;
    };
    const auto refused = [](int d, int blocks, int batch, const char* recipes) {
        TrainOptions options;
        options.model = "transformer";
        options.batch = batch;
        options.recipes = recipes;
        options.sizes = {{"context", 128}, {"d", d}, {"heads", 8}, {"ffn", 2816}, {"blocks", blocks}};
        try {
            make_cuda_trainer(make_train_spec(options), device());
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const std::size_t before = free_bytes();
    const std::string batch = refused(1024, 8, 1 << 13, "bf16,delayed"),
                      layers = refused(4096, 96, 4, "bf16,delayed"), one = refused(4096, 96, 4, "bf16");
    if (kCountsBytes) CHECK(free_bytes() == before);
    CAPTURE(batch);
    CHECK(batch.find("a batch of 8192 for 2 arms needs ") != std::string::npos);
    CHECK(batch.find("a batch of ") != batch.rfind("a batch of "));
    CHECK(batch.ends_with("would fit"));
    CAPTURE(layers);
    CHECK(layers.ends_with("no batch fits: choose fewer arms or a smaller model"));
    CAPTURE(one);
    CHECK(one.find("a batch of 4 for 1 arm needs ") != std::string::npos);
    CHECK(one.ends_with("no batch fits: choose a smaller model"));
}

TEST_CASE("rows that are padded share nothing, and the list counts them") {
    NEEDS_GPU();
    for (const std::string recipe : {"bf16", "delayed", "nvfp4-te"}) {
        CAPTURE(recipe);
        const TrainSpec spec = spec_of({.recipe = recipe, .context = 17});
        const Trained run = train(spec, Sharing::all, false);
        CHECK_FALSE(run.shares);
        if (kCountsBytes) CHECK(run.allocated == run.listed);
    }
}

TEST_CASE("what the list knows of the kernels' sizes is what the kernels say") {
    NEEDS_GPU();
    for (const int cols : {16, 64, 1024, 1040, 4096})
        for (int rows = 1; rows < 20000; rows += rows < 100 ? 1 : 97) {
            CAPTURE(rows);
            REQUIRE(strips_of(rows, cols) == norm_partials(shape_of(rows, cols)));
        }
    for (const long long n : {1LL, 16383LL, 16384LL, 16385LL, 50272LL * 768})
        CHECK((n + kSquaresOfBlock - 1) / kSquaresOfBlock == square_partials(n));
    const TrainSpec spec = spec_of({"bf16"});
    for (const int batch : {1, 3, 8}) {
        const AttentionSizes sizes{batch, 16, 2, 1, 16};
        CHECK(make_materialised_attention(sizes, {})->bytes() == materialised_attention(spec, batch));
    }
    CHECK(Batches(spec).memory_bytes() == ring_bytes(spec, spec.batch));
}
