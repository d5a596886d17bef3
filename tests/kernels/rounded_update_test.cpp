// Updates that leave moments in 16 or 8 bits, or weights in BF16, against core's update() and store().
#include <doctest/doctest.h>

#include "core/nn/optimizer.h"
#include "core/nn/streams.h"
#include "core/scaling/moment_storage.h"
#include "kernels/optimizer/parameters.h"
#include "tests/kernels/transformer_memory.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

namespace {

constexpr std::uint64_t kSeed = 3;
constexpr int kLayer = 5;

struct Kind {
    std::string options;  // of a recipe
    Element gradient = Element::f32, payload = Element::f32;
    bool stats = false;
};

Element element_for(const std::optional<CastPlan>& how) {
    if (!how) return Element::f32;
    return how->format->name == "e4m3"   ? Element::e4m3
           : how->format->name == "e5m2" ? Element::e5m2
                                         : Element::bf16;
}
bool is_stochastic(const std::optional<CastPlan>& how) {
    return how && how->rounding == Rounding::stochastic;
}

// One matrix: on the device, and on the host as core has it.
struct Problem {
    Shape s;
    Kind kind;
    MomentStorage storage;
    Values w, g;
    Moments moments;
    std::int64_t zeros = 0, large = 0;
    Parameters w_memory, m_memory, v_memory;
    OnDevice g_memory;
    CastOutputs out;
    Buffer<MomentCounts> counts{1};

    Problem(Shape shape, const Kind& how, std::uint32_t seed)
        : s(shape),
          kind(how),
          storage(moment_storage(parse_recipe("bf16:" + how.options))),
          w(values(seed)),
          g(normals(count(), seed + 1, how.gradient, 1e-3F)),
          moments{values(seed + 2), values(seed + 3)},
          w_memory(storage.weights ? Element::bf16 : Element::f32, s),
          m_memory(element_for(storage.m), s),
          v_memory(element_for(storage.v), s),
          g_memory(g, s, how.gradient, 0),
          out(s, how.payload == Element::f32 ? Element::bf16 : how.payload, ScaleMode::tensor, 64,
              how.stats) {
        for (float& v : moments.v) v = v * v * 1e-3F;
        store(storage.weights, w, kSeed, 90);
        store(storage.m, moments.m, kSeed, 91);
        store(storage.v, moments.v, kSeed, 92);
        w_memory.write(w);
        m_memory.write(moments.m);
        v_memory.write(moments.v);
    }
    std::size_t count() const { return size_of(s.rows, s.cols); }
    // Of many magnitudes, some of them 0; a group of 128 zeros.
    Values values(std::uint32_t seed) const {
        Values x = normals(count(), seed);
        for (std::size_t i = 0; i < x.size(); ++i)
            x[i] = i % 13 == 0 || i / 128 == 1 ? 0 : std::ldexp(x[i], -static_cast<int>(i * i % 23));
        return x;
    }
    WeightUpdate update(const StepInput* inputs, const ArmState* arm, std::int32_t* finite) const {
        UpdateSource source;
        source.w = w_memory.get(), source.m = m_memory.get(), source.v = v_memory.get();
        source.g = g_memory.get();
        source.element = w_memory.element(), source.g_element = kind.gradient;
        source.inputs = inputs, source.arm = arm, source.finite = finite;
        source.rounded = {{m_memory.element(), is_stochastic(storage.m), m_memory.scale_inv()},
                          {v_memory.element(), is_stochastic(storage.v), v_memory.scale_inv()},
                          storage.weights.has_value(),
                          is_stochastic(storage.weights),
                          kSeed,
                          kLayer,
                          counts.get()};
        CastTarget target = out.target;
        if (kind.payload == Element::f32) target = {}, target.element = Element::f32;
        return {source, s, target};
    }
    void update_on_host(int step) {
        const OptimizerStep how{OptimizerKind::adamw, kCaseRate, kCaseDecay, step};
        REQUIRE(fp8lab::update(how, w, g, moments));
        large += count_updates_above(how, moments, 10 * kCaseRate);
        const auto dice = [&](unsigned what) { return fp8lab::stream(Draw::update, kLayer, step, what); };
        store(storage.m, moments.m, kSeed, dice(1));
        zeros += store(storage.v, moments.v, kSeed, dice(2), true);
        store(storage.weights, w, kSeed, dice(3));
    }
    void check() const {
        CHECK(different(w_memory.read(), w) == 0);
        CHECK(different(m_memory.read(), moments.m) == 0);
        CHECK(different(v_memory.read(), moments.v) == 0);
        const MomentCounts found = counts.download()[0];
        CHECK(static_cast<std::int64_t>(found.zeros) == zeros);
        CHECK(static_cast<std::int64_t>(found.large) == large);
        if (kind.payload == Element::e4m3) CHECK(out.rows.download() == codes_of(w, Element::e4m3, s, 64));
        if (kind.payload == Element::f32) return;
        const ScaleState state = out.state.download()[0];
        CHECK(std::bit_cast<float>(state.amax_bits) >= fp8lab::amax(w));
        if (kind.stats) CHECK(out.sums().signal > 0);
    }
};

StepInput input_of(int step) {
    StepInput input = case_input();
    const OptimizerStep how;
    input.rate = static_cast<float>(kCaseRate / (1 - std::pow(how.beta1, step + 1)));
    input.spread = static_cast<float>(1 / std::sqrt(1 - std::pow(how.beta2, step + 1)));
    return input;
}

// Two updates of all problems at once, in two launches each.
void check_updates(const std::vector<Shape>& shapes, const Kind& kind) {
    CAPTURE(kind.options);
    CAPTURE(static_cast<int>(kind.payload));
    CAPTURE(static_cast<int>(kind.gradient));
    CAPTURE(kind.stats);
    std::vector<std::unique_ptr<Problem>> problems;
    for (const Shape& s : shapes)
        problems.push_back(
            std::make_unique<Problem>(s, kind, static_cast<std::uint32_t>(10 * problems.size())));
    const Buffer<std::int32_t> finite = one(std::int32_t{1});
    for (int step = 3; step < 5; ++step) {
        const Buffer<StepInput> inputs = one(input_of(step));
        const Buffer<ArmState> arm = one(ArmState{step, 1});
        std::vector<WeightUpdate> updates;
        for (const auto& problem : problems)
            updates.push_back(problem->update(inputs.get(), arm.get(), finite.get()));
        const unsigned part = tiles_of(updates) / 2;
        update_weights(updates, {0, part}, 0, nullptr);
        update_weights(updates, {part}, step % 2 ? 3 : 0, nullptr);
        done();
        for (const auto& problem : problems) problem->update_on_host(step);
    }
    for (const auto& problem : problems) {
        CAPTURE(problem->s.rows);
        CAPTURE(problem->s.cols);
        problem->check();
    }
    CHECK(finite.download()[0] == 1);
}

// Groups of 128 in a row; and across rows, of which some begin within a group of four random numbers.
const std::vector<Shape> kShapes = {padded(70, 256), padded(1, 128),  padded(64, 32),  padded(1, 64),
                                    padded(33, 17),  padded(50, 144), padded(130, 384)};

}  // namespace

TEST_CASE("moments in 16 and 8 bits and weights in BF16 are core's after updates, bit for bit") {
    NEEDS_GPU();
    for (const std::string options :
         {"m=e4m3:v=e4m3", "m=bf16:v=bf16", "m=e4m3", "v=e4m3", "m=e5m2:v=e4m3", "m=bf16:v=e5m2",
          "m=e4m3:v=e4m3:round_m=stochastic:round_v=stochastic",
          "m=e5m2:v=e5m2:round_m=stochastic:round_v=stochastic", "v=bf16:round_v=stochastic",
          "m=bf16:v=e4m3:round_m=stochastic", "master=bf16", "master=bf16:round_update=stochastic",
          "master=bf16:round_update=stochastic:m=e4m3:v=bf16"}) {
        check_updates(kShapes, {options});
        check_updates(kShapes, {options, Element::f32, Element::e4m3});
    }
    for (const std::string options : {"m=e4m3:v=e4m3", "m=e4m3:v=bf16:round_v=stochastic"})
        for (const Element gradient : {Element::f32, Element::bf16})
            for (const Element payload : {Element::f32, Element::bf16, Element::e4m3})
                for (const bool stats : {false, true})
                    check_updates(kShapes, {options, gradient, payload, stats});
}

TEST_CASE("an arm that has stopped keeps its moments in fewer bits, and casts the weights that it has") {
    NEEDS_GPU();
    for (const Shape& s : {padded(70, 256), padded(33, 17)}) {
        Problem problem(s, {"m=e4m3:v=bf16:round_v=stochastic", Element::f32, Element::e4m3}, 1);
        const Buffer<StepInput> inputs = one(input_of(3));
        const Buffer<ArmState> arm = one(ArmState{3, 0});
        const Buffer<std::int32_t> finite = one(std::int32_t{1});
        const WeightUpdate update = problem.update(inputs.get(), arm.get(), finite.get());
        update_weights(update.source, s, update.target, nullptr);
        done();
        problem.check();
    }
}

TEST_CASE("a weight that becomes infinite is found where moments are in fewer bits") {
    NEEDS_GPU();
    for (const Shape& s : {padded(70, 256), padded(33, 17)}) {
        Problem problem(s, {"m=e4m3:v=e4m3"}, 1);
        problem.w.back() = kInf;
        problem.w_memory.write(problem.w);
        const Buffer<StepInput> inputs = one(input_of(3));
        const Buffer<ArmState> arm = one(ArmState{3, 1});
        const Buffer<std::int32_t> finite = one(std::int32_t{1});
        const WeightUpdate update = problem.update(inputs.get(), arm.get(), finite.get());
        update_weights(update.source, s, update.target, nullptr);
        done();
        CHECK(finite.download()[0] == 0);
    }
}

TEST_CASE("moments in 8 bits take a byte a value and four bytes a group on the device") {
    NEEDS_GPU();
    const Parameters small(Element::e4m3, padded(33, 17));
    CHECK(reinterpret_cast<std::uint8_t*>(small.scale_inv()) - static_cast<std::uint8_t*>(small.get()) ==
          5 * 128);
    CHECK(Parameters(Element::bf16, padded(33, 17)).scale_inv() == nullptr);
    CHECK(different(small.read(), Values(33 * 17, 0.0F)) == 0);
}
