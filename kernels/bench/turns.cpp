#include "kernels/bench/turns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>

#include "core/backend/grid_plan.h"
#include "kernels/bench/copy.h"
#include "kernels/device/graph.h"

namespace fp8lab::cuda {
namespace {

struct Quartiles {
    double q1 = 0, median = 0, q3 = 0;
};
Quartiles quartiles_of(std::vector<double> ms) {
    std::ranges::sort(ms);
    const auto at = [&](double q) {
        return ms[static_cast<std::size_t>(std::lround(q * static_cast<double>(ms.size() - 1)))];
    };
    return {at(0.25), at(0.5), at(0.75)};
}

struct Between {  // two events
    Event start, end;
    double ms() const {
        end.wait();
        return static_cast<double>(elapsed_ms(start, end));
    }
};

// One that is being timed. Two pairs of events, so that the next round is on its way while one is read.
struct Runner {
    const Turn* turn;
    int launches;
    std::vector<double> ms{};
    std::array<Between, 2> events{};

    void enqueue(std::size_t slot, cudaStream_t stream) {
        events[slot].start.record(stream);
        for (int i = 0; i < launches; ++i) turn->launch(stream);
        events[slot].end.record(stream);
    }
    void collect(std::size_t slot) { ms.push_back(events[slot].ms() / launches); }
    void fill_in() const {
        constexpr std::size_t kFewest = 3;
        if (ms.size() < kFewest) return;
        const Quartiles q = quartiles_of(ms);
        if (turn->median) *turn->median = q.median;
        if (!turn->time) return;
        turn->time->median_ms = q.median;
        turn->time->q1_ms = q.q1;
        turn->time->q3_ms = q.q3;
        turn->time->repeats = static_cast<int>(ms.size());
    }
};

}  // namespace

bool time_turns(const std::vector<Turn>& turns, int repeats, cudaStream_t stream, const AfterRound& after) {
    if (turns.empty()) return true;
    double slowest = 0;
    std::vector<Runner> runners;
    for (const Turn& turn : turns) {
        runners.push_back({&turn, grid_launches(turn.ms)});
        slowest = std::max(slowest, turn.ms);
    }
    const int samples = grid_samples(repeats, slowest);
    // The order changes from round to round, so that no job always follows the same one.
    const auto enqueue = [&](int round) {
        for (std::size_t i = 0; i < runners.size(); ++i)
            runners[(i + static_cast<std::size_t>(round)) % runners.size()].enqueue(
                static_cast<std::size_t>(round % 2), stream);
    };
    enqueue(0);  // the first does not count
    for (int round = 1; round <= samples; ++round) {
        enqueue(round);
        if (round == 1) continue;
        for (Runner& runner : runners) runner.collect(static_cast<std::size_t>((round - 1) % 2));
        for (const Runner& runner : runners) runner.fill_in();
        if (after && !after(static_cast<double>(round - 1) / samples)) {
            check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
            return false;
        }
    }
    for (Runner& runner : runners) {
        runner.collect(static_cast<std::size_t>(samples % 2));
        runner.fill_in();
    }
    return !after || after(1);
}

double rough_ms(const std::function<void(cudaStream_t)>& launch, cudaStream_t stream) {
    constexpr int kLaunches = 3;
    Between times;
    launch(stream);
    times.start.record(stream);
    for (int i = 0; i < kLaunches; ++i) launch(stream);
    times.end.record(stream);
    return times.ms() / kLaunches;
}

std::optional<double> short_contest(LtProduct& product, const LtOperands& on, cudaStream_t stream,
                                    Answer& refused) {
    constexpr double kMostMs = 700;    // of the first runs
    constexpr double kLongMs = 30;     // longer products have fewer samples
    constexpr double kShortMs = 0.05;  // a shorter measurement is lengthened
    constexpr int kMostLaunches = 8;
    constexpr std::size_t kFewest = 3;
    struct Round {
        std::size_t most;
        int samples;
    };
    constexpr std::array<Round, 2> kRounds = {{{6, 5}, {3, 21}}};
    constexpr std::array<Round, 1> kRoundsOfSlow = {{{kFewest, 3}}};
    struct Candidate {
        std::size_t index;
        double ms;
    };
    std::vector<Candidate> ran;
    int launches = 1;
    double spent = 0;
    Between times;
    const auto timed = [&](std::size_t i, int count) {
        times.start.record(stream);
        for (int launch = 0; launch < count; ++launch) product.run(i, on, stream);
        times.end.record(stream);
        return times.ms() / count;
    };
    for (std::size_t i = 0; i < product.candidates() && !(spent > kMostMs && ran.size() >= kFewest); ++i) {
        if (const cublasStatus_t status = product.run(i, on, stream); status != CUBLAS_STATUS_SUCCESS) {
            refused = refused_by_matmul(status);
            continue;
        }
        if (ran.empty())
            launches = std::clamp(static_cast<int>(kShortMs / std::max(timed(i, 1), 1e-3)), 1, kMostLaunches);
        const double ms = timed(i, launches);
        spent += ms * (launches + 1);
        ran.push_back({i, ms});
    }
    if (ran.empty()) return std::nullopt;
    refused = {};
    std::ranges::sort(ran, {}, &Candidate::ms);
    const bool slow = spent > kMostMs || ran.front().ms > kLongMs;
    const auto rounds = slow ? std::span<const Round>(kRoundsOfSlow) : std::span<const Round>(kRounds);
    for (const Round& round : rounds) {
        ran.resize(std::min(ran.size(), round.most));
        if (ran.size() == 1) break;
        // There are no pauses: launches that wait for the host differ by more than the algorithms do.
        std::vector<Turn> turns;
        for (Candidate& candidate : ran)
            turns.push_back({nullptr,
                             [&product, &on, i = candidate.index](cudaStream_t s) { product.run(i, on, s); },
                             candidate.ms, &candidate.ms});
        time_turns(turns, round.samples, stream, {});
        std::ranges::sort(ran, {}, &Candidate::ms);
    }
    product.keep(ran.front().index);
    return ran.front().ms;
}

namespace {

// An entry that runs, with what has to live as long as its turn.
struct Entered {
    const Entry* entry;
    LtProduct product;
    double ms = 0;
    std::unique_ptr<Graph> graph{};
    int in_graph = 0;
    double graph_ms = 0;  // of the whole graph

    void launch(cudaStream_t stream) const {
        LtOperands on = entry->on;
        for (int i = 0; i < entry->count; ++i) {
            product.run(on, stream);
            on.b = static_cast<const char*>(on.b) + entry->b_stride;
            on.d = static_cast<char*>(on.d) + entry->d_stride;
        }
    }
};

std::string shortened(std::string kernel) {
    if (kernel.size() > kLongestKernel) kernel = kernel.substr(0, kLongestKernel - 3) + "...";
    return kernel;
}

void tell_refusal(GridTime& time, const Answer& answer) {
    time.status = answer.status;
    time.from = answer.from;
    time.words = answer.words;
}

std::unique_ptr<Entered> enter(const Entry& entry, const Lt& lt, cudaStream_t stream) {
    auto entered = std::make_unique<Entered>(Entered{&entry, LtProduct(lt, entry.spec, kContestants)});
    LtProduct& product = entered->product;
    if (product.answer().status != 0) {
        tell_refusal(*entry.time, product.answer());
        return nullptr;
    }
    if (entry.known && product.take(*entry.known)) {
        entered->ms = rough_ms([&](cudaStream_t s) { product.run(entry.on, s); }, stream);
    } else {
        Answer refused;
        const auto ms = short_contest(product, entry.on, stream, refused);
        if (!ms) {
            tell_refusal(*entry.time, refused);
            return nullptr;
        }
        entered->ms = *ms;
    }
    entered->ms *= entry.count;
    entry.time->kernel = shortened(kernel_name([&](cudaStream_t s) { product.run(entry.on, s); }));
    return entered;
}

}  // namespace

bool time_entries(const std::vector<Entry>& entries, const Lt& lt, int repeats, cudaStream_t stream,
                  const AfterRound& after) {
    constexpr double kLongMs = 0.1;  // above it a graph saves nothing that can be seen
    constexpr int kMostInGraph = 64;
    std::vector<std::unique_ptr<Entered>> all;
    for (const Entry& entry : entries) {
        if (after && !after(0)) return false;
        if (auto entered = enter(entry, lt, stream)) all.push_back(std::move(entered));
    }
    std::vector<Turn> turns;
    for (const auto& e : all)
        turns.push_back({e->entry->time, [one = e.get()](cudaStream_t s) { one->launch(s); }, e->ms});
    if (!time_turns(turns, repeats, stream, after)) return false;
    turns.clear();
    for (const auto& e : all) {
        if (!e->entry->wants_graph || e->entry->time->median_ms > kLongMs) continue;
        e->in_graph = std::min(grid_launches(e->ms), kMostInGraph);
        e->graph = std::make_unique<Graph>(stream, [&] {
            for (int i = 0; i < e->in_graph; ++i) e->launch(stream);
        });
        turns.push_back({nullptr, [one = e.get()](cudaStream_t s) { one->graph->launch(s); },
                         e->ms * e->in_graph, &e->graph_ms});
    }
    const bool whole = time_turns(turns, repeats, stream, after);
    for (const auto& e : all)
        if (e->graph_ms > 0) e->entry->time->graph_ms = e->graph_ms / e->in_graph;
    return whole;
}

}  // namespace fp8lab::cuda
