// Virtual ranks of the CPU's trainer: against micro-batches, which compute the same parts one after the other, and against what
// must not change with the number of ranks.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/files/bounded_file.h"
#include "core/nn/streams.h"
#include "core/tensors/safetensors.h"
#include "core/threads/ask.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainOptions mlp(const std::string& recipes, int steps = 30, std::uint64_t seed = 1) {
    TrainOptions options;
    options.recipes = recipes;
    options.layers = std::vector{32, 24, 20, 1};
    options.batch = 64;
    options.steps = steps;
    options.seed = seed;
    return options;
}

TrainOptions transformer(const std::string& task, const std::string& recipes, int steps, int tie = 0) {
    TrainOptions options;
    options.model = "transformer";
    options.sizes = {{"d", 32},   {"blocks", 1},   {"heads", 2}, {"kv-heads", 1},
                     {"ffn", 48}, {"context", 32}, {"tie", tie}};
    options.task = task;
    options.recipes = recipes;
    options.steps = steps;
    return options;
}

TrainOptions ranked(TrainOptions options, int ranks, const std::string& sum = "") {
    options.ranks = ranks;
    options.sum = sum;
    return options;
}

TrainOptions zero1(TrainOptions options, const std::string& gather, const std::string& scale = "") {
    options.shard = "zero1";
    options.gather = gather;
    options.weight_scale = scale;
    return options;
}

TrainOptions cut(TrainOptions options, int parts) {
    options.accumulate = parts;
    return options;
}

Snapshot trained(const TrainOptions& options, std::optional<TensorId> watched = {}) {
    const auto trainer = make_cpu_trainer(make_train_spec(options));
    if (watched) trainer->set(Watch{watched});
    trainer->step(trainer->spec().steps);
    return trainer->snapshot();
}

std::vector<double> losses_of(const TrainOptions& options) {
    std::vector<double> out;
    const Snapshot snapshot = trained(options);
    for (const StepRecord& record : snapshot.arms[0].records) out.push_back(record.loss);
    return out;
}

std::vector<ParameterCheckpoint> weights_of(const TrainOptions& options) {
    const Scratch scratch;
    const auto trainer = make_cpu_trainer(make_train_spec(options));
    trainer->step(trainer->spec().steps);
    trainer->save(scratch.path);
    return load_checkpoints(scratch.path, trainer->spec()).arms[0].parameters;
}

double distance(const std::vector<ParameterCheckpoint>& a, const std::vector<ParameterCheckpoint>& b) {
    double error = 0, size = 0;
    for (std::size_t p = 0; p < a.size(); ++p)
        for (std::size_t i = 0; i < a[p].values.size(); ++i) {
            error += std::pow(double{a[p].values[i]} - double{b[p].values[i]}, 2);
            size += std::pow(double{b[p].values[i]}, 2);
        }
    return std::sqrt(error / size);
}

// One step of SGD that is almost all gradient.
TrainOptions one_gradient(TrainOptions options) {
    options.optimizer = "sgd";
    options.clip = 0;
    options.lr = 1024;
    options.steps = 1;
    return options;
}

std::string why(const TrainOptions& options) {
    try {
        make_train_spec(options);
    } catch (const Error& error) {
        return error.kind() == ErrorKind::usage ? error.what() : "not a usage error";
    }
    return "";
}

}  // namespace

TEST_CASE("two ranks that add in FP32 give the bits of two micro-batches, whatever the recipe") {
    for (const std::string recipe :
         {"fp32", "bf16", "current", "delayed:interval=3", "mxfp8", "rowwise", "nvfp4-te",
          "current:round=stochastic:round_bwd=stochastic", "delayed:wgrad_in=current:algo=most_recent",
          "unscaled:loss_scale=1024", "delayed:m=e4m3:v=e5m2:round_v=stochastic", "current:master=none"}) {
        CAPTURE(recipe);
        const std::vector<double> micro = losses_of(cut(mlp(recipe), 2));
        CHECK(losses_of(ranked(mlp(recipe), 2, "fp32")) == micro);
    }
    for (const int tie : {0, 1}) {
        const TrainOptions options = transformer("copying", "delayed", 8, tie);
        CHECK(losses_of(ranked(options, 2, "fp32")) == losses_of(cut(options, 2)));
    }
}

TEST_CASE("sharding changes no bit where weights are sent as their GEMMs read them") {
    // Blocks of 24, 20 and 1 rows are not of equal size; BF16 is what recipe bf16 reads, the codes are those of the cast.
    for (const int count : {2, 4, 8})
        for (const std::string recipe : {"fp32", "bf16", "current", "delayed", "current:round=stochastic"}) {
            CAPTURE(recipe);
            CAPTURE(count);
            TrainOptions options = mlp(recipe);
            if (count == 8) options.layers = std::vector{32, 24, 40, 8};
            const bool codes = recipe != "fp32" && recipe != "bf16";
            // Chunks of the ring differ: tree and wire have no chunks.
            for (const std::string sum : {"bf16-tree", "e4m3-wire"}) {
                const TrainOptions whole = ranked(options, count, sum);
                CHECK(losses_of(zero1(whole, codes ? "e4m3" : "")) == losses_of(whole));
                if (recipe != "delayed") continue;
                TrainOptions micro = cut(whole, 2);
                micro.amax_of = "each";
                CHECK(losses_of(zero1(micro, "e4m3")) == losses_of(micro));
            }
        }
    const TrainOptions tokens = ranked(transformer("copying", "delayed:scope=all", 8, 1), 4, "bf16-tree");
    CHECK(losses_of(zero1(tokens, "e4m3")) == losses_of(tokens));
}

TEST_CASE(
    "the gradient of ranks in FP32 is that of one batch within 1e-6, in other sums within their error") {
    for (const TrainOptions& options :
         {one_gradient(mlp("fp32")), one_gradient(transformer("copying", "fp32", 1))}) {
        const auto whole = weights_of(options);
        for (const int count : {2, 4, 8}) {
            CAPTURE(options.task);
            CAPTURE(count);
            const auto off = [&](const std::string& sum) {
                const double plain = distance(weights_of(ranked(options, count, sum)), whole),
                             sharded = distance(weights_of(zero1(ranked(options, count, sum), "")), whole);
                CHECK(sharded == doctest::Approx(plain).epsilon(0.5));
                return sharded;
            };
            CHECK(off("fp32") < 1e-6);
            CHECK(off("bf16") < 0.01);
            CHECK(off("e4m3-wire") < 0.05);
            CHECK(off("e5m2") > off("e4m3"));
            CHECK(off("e4m3") > off("bf16"));
        }
    }
}

TEST_CASE("the record says how far the sum is from the one in float64") {
    const auto error_of = [](const std::string& sum) {
        return trained(ranked(mlp("current", 1), 8, sum)).arms[0].records[0].sum_error;
    };
    CHECK(error_of("fp32") < 1e-4);
    CHECK(error_of("bf16") > 0.1);
    CHECK(error_of("bf16") < 1);
    CHECK(error_of("e4m3") > 3);
    CHECK(error_of("e4m3") < error_of("e5m2"));
    CHECK(std::isnan(trained(mlp("current", 1)).arms[0].records[0].sum_error));
    CHECK(std::isnan(trained(mlp("current", 1)).arms[0].records[0].rank_spread));
    CHECK(trained(mlp("current", 1)).arms[0].records[0].ranks.empty());
}

TEST_CASE("each rank has its batch, its loss and its scales, and the record is of all") {
    const TensorId x1{0};
    const auto ranks = trained(ranked(mlp("current", 3), 4), x1),
               micro = trained(cut(mlp("current", 3), 4), x1);
    for (std::size_t i = 0; i < 3; ++i) {
        const StepRecord& record = ranks.arms[0].records[i];
        REQUIRE(record.ranks.size() == 4);
        double loss = 0;
        float largest = 0;
        std::set<float> scales;
        for (const RankRecord& rank : record.ranks) {
            loss += rank.loss / 4;
            REQUIRE(rank.watched);
            largest = std::max(largest, rank.watched->amax);
            scales.insert(rank.watched->scale);
            CHECK(double{rank.watched->scale} == doctest::Approx(448 / double{rank.watched->amax}));
        }
        CHECK(loss == doctest::Approx(record.loss).epsilon(1e-12));
        CHECK(scales.size() == 4);
        CHECK(record.tensors[0].amax == largest);
        CHECK(record.tensors[0].scale == *scales.begin());  // of the rank that has it
    }
    // The first step has the same weights: its casts are those of the micro-batches.
    const auto &a = ranks.arms[0].records[0].tensors, &b = micro.arms[0].records[0].tensors;
    for (const std::size_t t : {0, 2, 3, 5, 6, 8}) {
        CHECK(a[t].amax == b[t].amax);
        CHECK(a[t].underflow_pct == b[t].underflow_pct);
        CHECK(a[t].sqnr_db == doctest::Approx(b[t].sqnr_db));
    }
}

TEST_CASE("amaxes that are reduced give all ranks one scale, local ones give each its own") {
    const TensorId x1{0};
    for (const std::string act_amax : {"reduced", "local"}) {
        TrainOptions options = ranked(mlp("delayed", 4), 4);
        options.act_amax = act_amax;
        const auto records = trained(options, x1).arms[0].records;
        std::set<float> scales;
        float largest = 0;
        for (const RankRecord& rank : records[3].ranks) scales.insert(rank.watched->scale);
        for (int i = 0; i < 3; ++i)
            for (const RankRecord& rank : records[static_cast<std::size_t>(i)].ranks)
                largest = std::max(largest, rank.watched->amax);
        CHECK(scales.size() == (act_amax == "reduced" ? 1 : 4));
        CHECK(double{*scales.begin()} == doctest::Approx(448 / double{largest}));
    }
}

TEST_CASE("a scale that does not travel with its bytes: equal bytes, other values") {
    TrainOptions options = mlp("current", 20);
    options.layers = std::vector{32, 64, 64, 1};
    for (const std::string scale : {"reduced", "shard", "own"}) {
        CAPTURE(scale);
        const auto arm = trained(zero1(ranked(options, 4), "e4m3", scale)).arms[0];
        REQUIRE(arm.ranks.size() == 4);
        std::set<std::uint32_t> bytes, values;
        for (const RankState& rank : arm.ranks) {
            bytes.insert(rank.bytes_crc32.value());
            values.insert(rank.values_crc32.value());
            REQUIRE(rank.weights.size() == 3);
            CHECK(rank.finite);
            // w3 has one row, which rank 0 owns; so all read it alike.
            CHECK(rank.weights[2].off_pct < 4);
            CHECK((rank.weights[2].amax > 0) == (&rank == arm.ranks.data()));
            CHECK((rank.weights[1].off_pct > 5) == (scale == "own"));
        }
        CHECK(bytes.size() == 1);
        CHECK(values.size() == (scale == "own" ? 4 : 1));
        const double spread = arm.records.back().rank_spread;
        CHECK((scale == "own" ? spread > 5 : spread == 0));
    }
    const auto plain = trained(ranked(options, 4)).arms[0];
    CHECK(plain.ranks.size() == 4);
    CHECK_FALSE(plain.ranks[0].bytes_crc32);
}

TEST_CASE("what a rank reads of weights sent in E4M3 is the owner's cast with the owner's scale") {
    // After one step the masters are known from a checkpoint; here they are cast by hand.
    TrainOptions options = mlp("current", 2);
    options.layers = std::vector{32, 64, 64, 1};
    const Scratch scratch;
    const auto trainer = make_cpu_trainer(make_train_spec(zero1(ranked(options, 4), "e4m3", "own")));
    trainer->step(1);
    trainer->save(scratch.path);
    const auto states = trainer->snapshot().arms[0].ranks;
    const auto w2 = load_checkpoints(scratch.path, trainer->spec()).arms[0].parameters[2].values;
    const FormatInfo& e4m3 = find_format("e4m3");
    std::vector<float> scales;
    for (std::size_t r = 0; r < 4; ++r) {
        float largest = 0;
        for (std::size_t i = r * 1024; i < (r + 1) * 1024; ++i) largest = std::max(largest, std::fabs(w2[i]));
        CHECK(states[r].weights[1].amax == largest);
        scales.push_back(448 / largest);
        CHECK(states[r].weights[1].scale == scales[r]);
    }
    for (std::size_t reader = 0; reader < 4; ++reader) {
        double error = 0, size = 0;
        for (std::size_t i = 0; i < w2.size(); ++i) {
            const float code = decode(e4m3, encode(e4m3, w2[i] * scales[i / 1024]));
            error += std::pow(double{code * (1 / scales[reader])} - double{w2[i]}, 2);
            size += double{w2[i]} * double{w2[i]};
        }
        CHECK(states[reader].weights[1].off_pct == doctest::Approx(100 * std::sqrt(error / size)));
    }
}

TEST_CASE("a resumed run of ranks goes on to the byte, and any number of ranks resumes") {
    for (const std::string amax_of : {"max", "each"})
        for (const std::string act_amax : {"reduced", "local"})
            for (const std::string scale : {"reduced", "shard", "own"}) {
                TrainOptions options =
                    zero1(ranked(cut(mlp("delayed:interval=2,bf16", 24), 2), 4), "e4m3", scale);
                options.amax_of = amax_of, options.act_amax = act_amax;
                CAPTURE(amax_of);
                CAPTURE(act_amax);
                CAPTURE(scale);
                const Scratch whole, half, both;
                const TrainSpec spec = make_train_spec(options);
                const auto a = make_cpu_trainer(spec);
                a->step(11);
                a->save(half.path);
                a->step(13);
                a->save(whole.path);
                const auto b = make_cpu_trainer(spec);
                b->load(half.path);
                b->step(13);
                b->save(both.path);
                int files = 0;
                for (const auto& file : std::filesystem::directory_iterator(whole.path)) {
                    CHECK(read_bytes(file.path()) == read_bytes(both.path / file.path().filename()));
                    ++files;
                }
                CHECK(files == 2);
                const auto first = checkpoints_to_load(half.path).front();
                const SafeTensors file = parse_safetensors(read_bytes(first), "checkpoint");
                CHECK(file.tensors.contains("rank3/history.x1"));
                CHECK_FALSE(file.tensors.contains("history.x1"));
                CHECK(file.tensors.at("w2").shape == std::vector<std::size_t>{20, 24});
                const double wanted = a->snapshot().arms[1].records.back().loss;  // BF16
                for (const int ranks : {1, 2, 8}) {
                    TrainOptions other = mlp("delayed:interval=2,bf16", 24);
                    other.ranks = ranks;
                    const auto c = make_cpu_trainer(make_train_spec(other));
                    c->load(half.path);
                    c->step(13);
                    const double loss = c->snapshot().arms[0].records.back().loss;
                    CHECK(loss == doctest::Approx(wanted).epsilon(0.1));
                }
            }
}

TEST_CASE(
    "ranks beyond those that saved a checkpoint begin with the scales of rank 0, one rank with them too") {
    const Scratch scratch;
    TrainOptions options = ranked(mlp("delayed", 10), 2);
    options.act_amax = "local";
    const auto a = make_cpu_trainer(make_train_spec(options));
    a->step(5);
    a->save(scratch.path);
    const auto scales_with = [&](int ranks) {
        TrainOptions other = options;
        other.ranks = ranks;
        if (ranks == 1) other.act_amax.clear();
        std::map<int, float> out;  // of x1
        const LoadedCheckpoints loaded = load_checkpoints(scratch.path, make_train_spec(other));
        for (const ScaleCheckpoint& s : loaded.arms[0].scales)
            if (s.id.index == 0) out[s.rank.value_or(-1)] = s.scale;
        return out;
    };
    const auto two = scales_with(2), four = scales_with(4), one = scales_with(1);
    CHECK(two.size() == 2);
    CHECK(two.at(0) != two.at(1));
    CHECK(four.size() == 4);
    CHECK(four.at(1) == two.at(1));
    CHECK(four.at(3) == two.at(0));
    CHECK(one.size() == 1);
    CHECK(one.at(-1) == two.at(0));
}

TEST_CASE(
    "NaN in one rank's batch is in the weights of all after that step, and the record names rank and "
    "tensor") {
    for (const std::string recipe : {"bf16", "current", "fp32"}) {
        CAPTURE(recipe);
        TrainOptions options = zero1(ranked(mlp(recipe, 10), 4), "");
        options.bad = "2:nan:6";
        const auto arm = trained(options).arms[0];
        REQUIRE(arm.stopped);
        CHECK(to_string(*arm.stopped) == "x1 of rank 2 became non-finite at step 6");
        CHECK(arm.records.size() == 7);
        CHECK(std::isnan(arm.records[6].loss));
        for (std::size_t r = 0; r < 4; ++r) {
            CHECK(std::isnan(arm.records[6].ranks[r].loss) == (r == 2));
            CHECK_FALSE(arm.ranks[r].finite);
        }
    }
}

TEST_CASE(
    "a large batch of one rank: with reduced amaxes all ranks lose x1, with local ones that rank alone") {
    const TensorId x1{0};
    for (const std::string act_amax : {"reduced", "local"}) {
        CAPTURE(act_amax);
        TrainOptions options = ranked(mlp("delayed:history=4", 20), 4);
        options.bad = "2:x1e6:10", options.act_amax = act_amax;
        const auto records = trained(options, x1).arms[0].records;
        REQUIRE(records.size() == 20);
        for (std::size_t step = 8; step < 20; ++step)
            for (std::size_t r = 0; r < 4; ++r) {
                CAPTURE(step);
                CAPTURE(r);
                const bool lost = step > 10 && step <= 14 && (r == 2 || act_amax == "reduced");
                CHECK(records[step].ranks[r].watched->underflow_pct == (lost ? 100.0F : 0.0F));
            }
    }
    TrainOptions tokens = ranked(transformer("copying", "delayed", 4), 4);
    tokens.bad = "0:x1e6:2";
    const auto records = trained(tokens, TensorId{0}).arms[0].records;
    // The first norm takes the factor out again: the losses show it, through the residual stream.
    CHECK(records[1].ranks[0].loss == doctest::Approx(records[1].ranks[1].loss).epsilon(0.2));
    CHECK(records[2].ranks[0].loss != doctest::Approx(records[2].ranks[1].loss).epsilon(1e-3));
}

TEST_CASE("a step of ranks that was given up gives the same bytes when it is done again") {
    TrainOptions options = zero1(ranked(cut(mlp("delayed:interval=3", 20), 2), 4), "e4m3");
    options.amax_of = "each";
    const std::vector<double> wanted = losses_of(options);
    const auto trainer = make_cpu_trainer(make_train_spec(options));
    int given_up = 0;
    for (int step = 0; step < 20; ++step) {
        int left = 1 + step * 37 % 200;
        try {
            const AskBetween ask([&] {
                if (--left == 0) throw Cancelled();
            });
            trainer->step();
        } catch (const Cancelled&) {
            ++given_up;
            if (trainer->steps_done() == step) trainer->step();
        }
    }
    std::vector<double> got;
    const Snapshot snapshot = trainer->snapshot();
    for (const StepRecord& r : snapshot.arms[0].records) got.push_back(r.loss);
    CHECK(given_up > 5);
    CHECK(got == wanted);
}

TEST_CASE("options of ranks that fit nothing or have no effect are refused by name") {
    const auto with = [](const std::function<void(TrainOptions&)>& change,
                         const std::string& recipes = "delayed") {
        TrainOptions options = ranked(mlp(recipes), 4);
        change(options);
        return why(options);
    };
    using O = TrainOptions;
    CHECK(with([](O&) {}) == "");
    CHECK(with([](O& o) { o.ranks = 7; }) == "--ranks: 7 ranks do not divide a batch of 64");
    CHECK(with([](O& o) { o.ranks = 16, o.accumulate = 8; }) ==
          "--ranks: 16 ranks of 8 micro-batches each do not divide a batch of 64");
    CHECK(with([](O& o) { o.ranks = 1024, o.accumulate = 8, o.batch = 65536; }).find("4096") !=
          std::string::npos);
    CHECK(with([](O& o) { o.ranks = 0; }) == "--ranks: 0 is not in 1..1024");
    CHECK(with([](O& o) { o.ranks = 1025; }) == "--ranks: 1025 is not in 1..1024");
    CHECK(with([](O& o) { o.sum = "fp16"; }) ==
          "--sum: unknown sum 'fp16'; valid: fp32 bf16 bf16-tree e4m3 e5m2 e4m3-wire");
    CHECK(with([](O& o) { o.shard = "zero3"; }).find("--shard: unknown shard 'zero3'") == 0);
    CHECK(with([](O& o) { o.shard = "zero1", o.gather = "fp8"; }).find("--gather: unknown gather 'fp8'") ==
          0);
    CHECK(with([](O& o) { o.gather = "e4m3"; }) == "--gather: e4m3 has no effect without --shard zero1");
    CHECK(with([](O& o) { o.shard = "zero1", o.gather = "e4m3"; }, "bf16") ==
          "--gather: e4m3 has no effect without an arm whose weights have one E4M3 scale per tensor");
    CHECK(with([](O& o) { o.shard = "zero1", o.weight_scale = "own"; }) ==
          "--wscale: own has no effect without --gather e4m3");
    CHECK(with([](O& o) {
              o.shard = "zero1", o.gather = "e4m3", o.weight_scale = "mine";
          }).find("--wscale: unknown wscale 'mine'") == 0);
    CHECK(with([](O& o) { o.shard = "zero1", o.gather = "e4m3", o.weight_cache = "stale"; }) ==
          "--weight-cache: stale: with --gather e4m3 owners cast once a step");
    CHECK(with([](O& o) { o.act_amax = "local"; }, "current") ==
          "--act-amax: local has no effect without an arm of delayed scaling");
    CHECK(with([](O& o) { o.act_amax = "none"; }).find("--act-amax: unknown act-amax 'none'") == 0);
    CHECK(with([](O& o) { o.bad = "4:nan:3"; }) == "--bad: rank 4 is not in 0..3");
    CHECK(with([](O& o) { o.bad = "3:nan:30"; }) == "--bad: step 30 is not in 0..29");
    for (const char* bad : {"3", "3:nan", "3:nan:", ":nan:3", "3:inf:3", "3:x:3", "3:xnan:3", "3:x1e99:3",
                            "3:1e6:3", "a:nan:3", "3:nan:3.5", "3:nan:3:4"})
        CHECK(with([&](O& o) { o.bad = bad; }) ==
              fmt::format("--bad: '{}' is not RANK:nan:STEP or RANK:xFACTOR:STEP", bad));
    const std::vector<std::pair<std::string, std::string O::*>> options = {
        {"--shard", &O::shard},         {"--gather", &O::gather},     {"--sum", &O::sum},
        {"--wscale", &O::weight_scale}, {"--act-amax", &O::act_amax}, {"--bad", &O::bad}};
    const std::map<std::string, std::string> values = {{"--shard", "zero1"},    {"--gather", "bf16"},
                                                       {"--sum", "e4m3"},       {"--wscale", "own"},
                                                       {"--act-amax", "local"}, {"--bad", "0:nan:1"}};
    for (const auto& [option, member] : options)
        CHECK(with([&](O& o) { o.ranks.reset(), o.*member = values.at(option); }) ==
              fmt::format("{}: {} has no effect with one rank", option, values.at(option)));
    TrainOptions smooth = zero1(ranked(transformer("copying", "delayed:act=smooth", 4), 4), "");
    CHECK(why(smooth).find("--shard: zero1 sends weights as they are kept") == 0);
}

TEST_CASE("the command line spells the options of ranks, and only those that are not the defaults") {
    TrainOptions options = zero1(ranked(mlp("delayed"), 8, "e4m3-wire"), "e4m3", "own");
    options.act_amax = "local", options.bad = "2:x1e6:10";
    CHECK(command_line(make_train_spec(options))
              .ends_with(" --ranks 8 --shard zero1 --gather e4m3 --sum e4m3-wire --wscale own --act-amax "
                         "local --bad 2:x1e+06:10"));
    CHECK(command_line(make_train_spec(ranked(mlp("delayed"), 2))).ends_with(" --seed 1 --ranks 2"));
    CHECK(command_line(make_train_spec(ranked(mlp("delayed"), 1))).ends_with(" --seed 1"));
}
