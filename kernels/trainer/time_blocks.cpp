#include "kernels/trainer/time_blocks.h"

#include "core/nn/model.h"
#include "kernels/arm/batches.h"
#include "kernels/arm/part_times.h"
#include "kernels/bench/measure.h"
#include "kernels/checks/probe.h"
#include "kernels/device/graph.h"
#include "kernels/gemm/engine.h"
#include "kernels/transformer/arm.h"

namespace fp8lab::cuda {

std::vector<BlockTimes> time_blocks(const TrainSpec& spec, std::shared_ptr<Device> device, int repeats) {
    constexpr int kWarmUp = 5;
    const cudaStream_t stream = device->stream.get();
    const Batches batches(spec);
    struct Timed {
        std::unique_ptr<TransformerArm> arm;
        std::optional<Graph> graph;
        std::vector<double> ms;
        BlockTimes times;
    };
    std::vector<Timed> arms;
    for (const Recipe& recipe : spec.arms) {
        model_plan(spec).check(recipe);
        const EngineChoice choice =
            choose_engine(recipe, [&](const GemmSpec& gemm) { return refusal_of(device->lt, gemm, stream); });
        Timed& one = arms.emplace_back();
        one.arm = std::make_unique<TransformerArm>(spec, recipe, choice, device->lt, batches.rings(false),
                                                   stream, Preparation{});
        one.arm->fill_block_inputs(stream);
        one.times.recipe = recipe.name;
        one.times.attention = one.arm->attention();
        one.times.memory_bytes = static_cast<double>(one.arm->memory_bytes());
        one.arm->enqueue_blocks(stream, {});  // modules load before the capture
        device->stream.wait();
        PartTimes parts(stream);
        const Graph marked(stream, [&] {
            parts.begin();
            one.arm->enqueue_blocks(stream, parts.marks());
        });
        for (int i = 0; i < kWarmUp; ++i) marked.launch(stream);
        device->stream.wait();
        one.times.parts = parts.read(false);
        one.graph.emplace(stream, [&] { one.arm->enqueue_blocks(stream, {}); });
    }
    Event begin, end;
    for (int i = 0; i < kWarmUp + repeats; ++i)
        for (Timed& one : arms) {
            begin.record(stream);
            one.graph->launch(stream);
            end.record(stream);
            end.wait();
            if (i >= kWarmUp) one.ms.push_back(static_cast<double>(elapsed_ms(begin, end)));
        }
    std::vector<BlockTimes> out;
    for (Timed& one : arms) {
        fp8lab::Timed line;
        summarise(line, one.ms);
        one.times.median_ms = line.median_ms;
        one.times.q1_ms = line.q1_ms;
        one.times.q3_ms = line.q3_ms;
        out.push_back(std::move(one.times));
    }
    return out;
}

}  // namespace fp8lab::cuda
