// What a trainer records in a trace: whole steps only, of every arm, whatever thread computes it.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "core/base/error.h"
#include "core/json/trace_events.h"
#include "core/threads/ask.h"
#include "core/threads/parallel.h"
#include "core/trainer/cpu_trainer.h"

using namespace fp8lab;

namespace {

TrainSpec traced_spec(const std::string& recipes, int steps) {
    TrainOptions options;
    options.layers = {8, 16, 16, 1};
    options.batch = 32;
    options.steps = steps;
    options.recipes = recipes;
    return make_train_spec(options);
}

std::vector<std::string> step_names(const TraceTrack& track) {
    std::vector<std::string> out;
    for (const auto& step : track.steps()) out.push_back(step.front().name);
    return out;
}

// Of the spans in a step, without its own.
std::vector<std::string> span_names(const std::vector<TraceTrack::Span>& step) {
    std::vector<std::string> out;
    for (const TraceTrack::Span& span : std::span(step).subspan(1)) out.push_back(span.name);
    return out;
}

std::vector<std::uint64_t> loss_bits(Trainer& trainer) {
    std::vector<std::uint64_t> out;
    for (const ArmSnapshot& arm : trainer.snapshot().arms)
        for (const StepRecord& record : arm.records) out.push_back(std::bit_cast<std::uint64_t>(record.loss));
    return out;
}

const std::vector<std::string> kArms = {"bf16", "delayed", "mxfp8"};

}  // namespace

TEST_CASE("spans of a thread without a track, or outside of a step, are not recorded") {
    Trace trace({"a"}, 2);
    { const TraceSpan span("gemm", "no track"); }
    bool named = false;
    {
        const Traced here(&trace.tracks()[0]);
        const TraceSpan span("gemm", [&] { return named = true, "no step"; });
    }
    CHECK_FALSE(named);
    CHECK(trace.tracks()[0].steps().empty());
    CHECK(t_track == nullptr);
}

TEST_CASE("every number of threads records the same spans and trains the same bits") {
    const TrainSpec spec = traced_spec("bf16,delayed,mxfp8", 4);
    const int before = threads();
    const auto plain = make_cpu_trainer(spec);
    plain->step(4);
    const auto losses = loss_bits(*plain);
    CHECK(losses.size() == 12);
    std::vector<std::vector<std::string>> first;
    for (const int count : {1, 2, 3, 5}) {
        set_threads(count);
        Trace trace(kArms, 3);
        const auto trainer = make_cpu_trainer(spec);
        trainer->record_spans(trace);
        trainer->step(4);
        CHECK(loss_bits(*trainer) == losses);
        std::vector<std::vector<std::string>> names;
        for (const TraceTrack& track : trace.tracks()) {
            CHECK(step_names(track) == std::vector<std::string>{"step 1", "step 2", "step 3"});
            for (const auto& step : track.steps()) names.push_back(span_names(step));
        }
        if (first.empty()) first = names;
        CHECK(names == first);
        // Three fprops, the loss, two dgrads, three wgrads, dy of layer 1, scales, optimiser.
        CHECK(names.front().size() == 3 * 5 + 1 + 2 * 4 + 3 * 2 + 1 + 2);
    }
    set_threads(before);
}

TEST_CASE("a step that is given up is not in a trace, and done again it is there once") {
    const TrainSpec spec = traced_spec("bf16,delayed,mxfp8", 6);
    Trace trace(kArms, 6);
    const auto trainer = make_cpu_trainer(spec);
    trainer->record_spans(trace);
    trainer->step(2);
    int asked = 0;
    {
        const AskBetween ask([&] {
            if (++asked > 20) throw Cancelled();
        });
        CHECK_THROWS_AS(trainer->step(4), Cancelled);
    }
    const int done = trainer->steps_done();
    for (const TraceTrack& track : trace.tracks())
        CHECK(track.steps().size() == static_cast<std::size_t>(done));
    trainer->step(6 - done);
    for (const TraceTrack& track : trace.tracks()) {
        CHECK(step_names(track) ==
              std::vector<std::string>{"step 0", "step 1", "step 2", "step 3", "step 4", "step 5"});
        CHECK(span_names(track.steps()[2]) == span_names(track.steps()[3]));
    }
}

TEST_CASE("an arm that stops has its last step in the trace") {
    TrainSpec spec = traced_spec("fp32,delayed", 5);
    spec.poison = Poison{.step = 1, .factor = std::numeric_limits<double>::infinity()};
    Trace trace({"fp32", "delayed"}, 5);
    const auto trainer = make_cpu_trainer(spec);
    trainer->record_spans(trace);
    trainer->step(4);
    CHECK(trainer->stopped(0).has_value());
    CHECK(step_names(trace.tracks()[0]) == std::vector<std::string>{"step 0", "step 1"});
}

TEST_CASE("micro-batches and ranks have spans of their own") {
    TrainSpec spec = traced_spec("delayed", 1);
    spec.ranks.count = 2;
    spec.accumulate.micro_batches = 2;
    Trace trace({"delayed"}, 1);
    const auto trainer = make_cpu_trainer(spec);
    trainer->record_spans(trace);
    trainer->step(1);
    const auto names = span_names(trace.tracks()[0].steps().front());
    for (const char* name :
         {"rank 0, micro-batch 0", "rank 1, micro-batch 0", "rank 0, micro-batch 1", "rank 1, micro-batch 1",
          "gather weights", "reduce gradients", "reduce amaxes"}) {
        CAPTURE(name);
        CHECK(std::ranges::count(names, name) == 1);
    }
    CHECK(std::ranges::count(names, "GEMM fprop 1") == 4);
}

TEST_CASE("times are whole parts of 125 ns, and the first span begins at 0") {
    Trace trace({"a"}, 1);
    {
        TraceTrack& track = trace.tracks()[0];
        const Traced here(&track);
        track.begin_step(7);
        { const TraceSpan span("gemm", "GEMM", "2 x 3"); }
        track.end_step();
    }
    const nlohmann::json events = trace_events(trace);
    REQUIRE(events.size() == 5);
    CHECK(events[3]["ts"] == 0.0);
    CHECK(events[3]["name"] == "step 7");
    CHECK(events[4]["args"]["detail"] == "2 x 3");
    for (std::size_t i = 3; i < 5; ++i)
        for (const char* member : {"ts", "dur"}) {
            const double eighths = events[i][member].get<double>() * 8;
            CHECK(eighths == std::floor(eighths));
            CHECK(eighths >= 0);
        }
}
