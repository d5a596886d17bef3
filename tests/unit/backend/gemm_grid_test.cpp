#include "core/backend/gemm_grid.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/grid_plan.h"
#include "core/backend/layer_probe.h"
#include "core/backend/recording.h"
#include "core/base/error.h"
#include "core/json/member.h"
#include "tests/json.h"

using namespace fp8lab;

namespace {

// As long as the names of today's kernels are at most.
const std::string kKernel = "nvjet_sm90_qqtst_256x128_128x4_1x2_v_bz_coopA_algo2_splitK_TNN";

void run_for(GridTime& time, double ms) {
    time.median_ms = ms;
    time.q1_ms = 0.99 * ms;
    time.q3_ms = 1.01 * ms;
    time.repeats = 20;
    time.kernel = kKernel;
    if (ms < 0.1) time.graph_ms = 0.95 * ms;
}

GridPoint point_of(std::string_view product, const GridLayer& layer, std::string_view kind) {
    GridPoint point;
    point.product = product;
    point.kind = kind;
    point.out = product == "wgrad" ? "f32" : "bf16";
    point.m = layer.m;
    point.n = layer.n;
    point.k = layer.k;
    run_for(point, 0.0071234567 + point.flop() / (kind == "bf16" ? 7e11 : 1.3e12));
    return point;
}

// Every member of every section, as many as there are on a GPU.
GemmGrid whole_grid() {
    GemmGrid grid;
    grid.device = "NVIDIA H200, 151 GB";
    grid.cublaslt = "13.1.0";
    grid.date = "2026-11-22";
    grid.command = "fp8lab bench gemm --grid --json";
    grid.facts = {{"GPU", "NVIDIA H200"}, {"driver", "580.95.05"}};
    grid.seconds = 93.4;
    grid.drift_pct = -1.2;
    grid.clocks = {1200, 1755, 1980, 3201, 640, 700, 71, "power cap"};
    for (const char* when : {"start", "end"})
        for (const char* what : {"copy", "bf16", "tensor-fast", "tensor"}) {
            GridCeiling ceiling;
            ceiling.what = what;
            ceiling.when = when;
            run_for(ceiling, ceiling.what == "copy" ? 0.5 : 1.4);
            grid.ceilings.push_back(ceiling);
        }
    for (const GridLayer& layer : grid_layers())
        for (const auto product : kGridProducts)
            for (const auto kind : kGridKinds) grid.points.push_back(point_of(product, layer, kind));
    for (const GridTensor& tensor : grid_tensors())
        for (const auto recipe : grid_recipes()) {
            GridCast cast;
            cast.what = tensor.what;
            cast.recipe = recipe;
            cast.rows = tensor.rows;
            cast.cols = tensor.cols;
            cast.bytes = 3.0 * tensor.rows * tensor.cols;
            cast.both_ms = 0.0321;
            run_for(cast, 0.0234);
            cast.kernel.clear();
            grid.casts.push_back(cast);
        }
    for (const GridLayer& layer : grid_alignments())
        for (const auto product : kGridProducts)
            for (const char* kind : {"bf16", "fp8"}) {
                GridAlign align;
                static_cast<GridPoint&>(align) = point_of(product, layer, kind);
                if (std::string(kind) == "fp8" && layer.k == 4097) {
                    align = {};
                    align.product = product;
                    align.kind = kind;
                    align.out = "bf16";
                    align.m = layer.m;
                    align.n = layer.n;
                    align.k = layer.k;
                    align.status = 15;
                    align.from = "heuristic";
                    align.words = "CUBLAS_STATUS_NOT_SUPPORTED (15): " + std::string(160, 'w');
                }
                grid.align.push_back(align);
            }
    for (const GridFused& fused : grid_qkv())
        for (const char* kind : {"bf16", "fp8"}) {
            GridQkv qkv{fused.d, fused.m, kind, {}, {}};
            run_for(qkv.three, 0.3);
            run_for(qkv.one, 0.2);
            grid.qkv.push_back(qkv);
        }
    for (const int n : kGridFormatSizes)
        for (const auto kind : kGridFormats) {
            GridFormat format;
            format.kind = kind;
            format.n = n;
            format.bytes = 4.0 * n * n;
            run_for(format, 1.5);
            grid.formats.push_back(format);
        }
    for (const char* kind : {"bf16", "fp8"}) {
        GridZeros zeros;
        zeros.kind = kind;
        zeros.n = 8192;
        zeros.random_ms = 1.4;
        run_for(zeros, 1.2);
        grid.zeros.push_back(zeros);
    }
    grid.host_copy = {1073741824.0, 19.6, 19.9, 24.1};
    for (const int groups : kGridGroups)
        for (const auto product : kGridProducts)
            for (const char* kind : {"bf16", "fp8"}) {
                GridGroup group;
                static_cast<GridPoint&>(group) =
                    point_of(product, {kGridGroupRows / groups, 4096, 4096}, kind);
                group.groups = groups;
                grid.groups.push_back(group);
            }
    grid.skipped = {{"points: 3 from 32768x8192, M=32768, fprop on", "the time limit of 180 s"}};
    grid.roofs = roofs_of(grid);
    return grid;
}

GemmGrid grid_in(const std::string& text) {
    const nlohmann::json json = parsed(text);
    return gemm_grid_of(JsonMember(json, "h200.json", "results[3]"));
}

const std::string& whole_json() {
    static const std::string json = gemm_grid_json(whole_grid(), "\"seed\":0");
    return json;
}

std::string changed(const std::string& from, const std::string& to) {
    std::string text = whole_json();
    const std::size_t at = text.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, from);
    return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a grid of all plans takes less than 400 kB and comes back as it was, to 4 digits") {
    CHECK(whole_json().size() < 400'000);
    const GemmGrid grid = whole_grid(), back = grid_in(whole_json());
    REQUIRE(back.points.size() == 1080);
    REQUIRE(back.casts.size() == grid.casts.size());
    CHECK(back.device == grid.device);
    CHECK(back.facts == grid.facts);
    CHECK(back.clocks.slowed_by == "power cap");
    CHECK(back.clocks.sm_mhz_median == 1755);
    CHECK(back.drift_pct == -1.2);
    CHECK(back.skipped.front().why == "the time limit of 180 s");
    for (std::size_t i = 0; i < grid.points.size(); ++i) {
        CHECK(back.points[i].median_ms == doctest::Approx(grid.points[i].median_ms).epsilon(5e-4));
        CHECK((back.points[i].graph_ms > 0) == (grid.points[i].median_ms < 0.1));
        CHECK(back.points[i].kernel == kKernel);
    }
    CHECK(back.align.size() == grid.align.size());
    CHECK(back.qkv.size() == grid.qkv.size());
    CHECK(back.formats.size() == grid.formats.size());
    CHECK(back.zeros.front().random_ms == 1.4);
    CHECK(back.host_copy.both_ms == 24.1);
    CHECK(back.groups.back().groups == 64);
    CHECK(back.ceilings.size() == 8);
    CHECK(back.roofs.fp8.m == grid.roofs.fp8.m);
    // Written again it is the same text: nothing is lost on the way.
    CHECK(gemm_grid_json(back, "\"seed\":0") == whole_json());
}

TEST_CASE("no point lies above its roof, and the memory roof is the faster of the copies") {
    GemmGrid grid = whole_grid();
    for (const GridPoint& point : grid.points)
        CHECK(point.tflops() <=
              (point.kind == "bf16" ? grid.roofs.bf16.tflops : grid.roofs.fp8.tflops) * (1 + 1e-12));
    CHECK(grid.roofs.memory_tb_s == doctest::Approx(2.0 * (1 << 30) / 0.5e-3 / 1e12));
    grid.ceilings[4].median_ms = 0.4;  // the copy at the end
    CHECK(roofs_of(grid).memory_tb_s == doctest::Approx(2.0 * (1 << 30) / 0.4e-3 / 1e12));
    // A refused point has no speed.
    grid.points.front().status = 15;
    grid.points.front().median_ms = 1e-9;
    CHECK(roofs_of(grid).bf16.tflops == grid.roofs.bf16.tflops);
}

TEST_CASE("a grid finds its points by the layer, and its casts by the layer's tensors") {
    const GemmGrid grid = whole_grid();
    const GridPoint* point = grid.point("wgrad", 8192, 16384, 4096, "bf16");
    REQUIRE(point);
    CHECK(point->out == "f32");
    CHECK(grid.point("wgrad", 8192, 16384, 4095, "bf16") == nullptr);
    REQUIRE(grid.cast("w", "delayed", 16, 16384, 4096));
    CHECK(grid.cast("w", "delayed", 16, 16384, 4096) == grid.cast("w", "delayed", 8192, 16384, 4096));
    CHECK(grid.cast("dy", "current", 8192, 16384, 4096)->cols == 16384);
    CHECK(grid.cast("x", "current", 8192, 16384, 4096)->cols == 4096);
    CHECK(grid.cast("x", "mxfp8", 8192, 16384, 4096) == nullptr);
    CHECK(grid.recorded_m(16384, 4096).size() == 12);
    CHECK(grid.recorded_m(16384, 4096).front() == 16);
    CHECK(grid.recorded_layers().front() == std::pair(16384, 4096));
    REQUIRE(grid.aligned("fprop", 4096, 4096, 4097, "fp8"));
    CHECK(grid.aligned("fprop", 4096, 4096, 4097, "fp8")->status == 15);
    CHECK_FALSE(grid.aligned("fprop", 4096, 4096, 4097, "fp8")->ran());
}

TEST_CASE("a grid that is not whole is refused with file and member") {
    const auto refused = [](const std::string& text, const std::string& place) {
        try {
            grid_in(text);
            FAIL("no error for " << place);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            CHECK(error.where() == "h200.json");
            CHECK_MESSAGE(error.why().find(place) != std::string::npos, error.why());
        }
    };
    const std::string first = fmt::format("\"median_ms\":{:.4g}", whole_grid().points.front().median_ms);
    const std::size_t points = whole_json().find("\"points\"");
    const auto in_points = [&](const std::string& from, const std::string& to) {
        std::string text = whole_json();
        const std::size_t at = text.find(from, points);
        REQUIRE(at != std::string::npos);
        return text.replace(at, from.size(), to);
    };
    refused(in_points(first, "\"median_ms\":0"), "'results[3].points[0].median_ms' is 0");
    refused(in_points(first, "\"median_ms\":\"1\""), "'results[3].points[0].median_ms' is not a number");
    refused(in_points(first, "\"median\":1"), "'results[3].points[0].median_ms' is missing");
    refused(in_points(first, "\"median_ms\":99"),
            "'results[3].points[0].median_ms' is not between the quartiles");
    refused(in_points("\"product\":\"fprop\"", "\"product\":\"prop\""),
            "'results[3].points[0].product' is 'prop'");
    refused(in_points("\"kind\":\"bf16\"", "\"kind\":\"int8\""), "'results[3].points[0].kind' is 'int8'");
    refused(in_points("\"m\":16,", "\"m\":0,"), "'results[3].points[0].m'");
    refused(in_points("\"m\":16,", "\"m\":16.5,"), "'results[3].points[0].m'");
    refused(in_points("\"what\":\"x\"", "\"what\":\"y\""), "'results[3].casts[0].what' is 'y'");
    refused(in_points("\"recipe\":\"delayed\"", "\"recipe\":\"late\""), "'results[3].casts[0].recipe'");
    refused(in_points("\"status\":15", "\"status\":0"), "status'");
    refused(in_points("\"from\":\"heuristic\"", "\"from\":\"me\""), "from' is 'me'");
    refused(in_points("\"three\":{", "\"tree\":{"), "'results[3].qkv[0].three' is missing");
    refused(in_points("\"random_ms\":1.4", "\"random_ms\":0"), "'results[3].zeros[0].random_ms' is 0");
    refused(changed("\"memory_tb_s\":4.295", "\"memory_tb_s\":0"), "'results[3].roofs.memory_tb_s' is 0");
    refused(changed("\"clocks\":{", "\"clocks\":[],\"old\":{"), "'results[3].clocks' is not an object");
    refused(changed("\"points\":[", "\"points\":7,\"old\":["), "'results[3].points' is not an array");
    refused(changed("\"cublaslt\":\"13.1.0\"", "\"cublaslt\":\"\""), "'results[3].cublaslt' is empty");
}

TEST_CASE("a GPU without sensors, without FP8 and cut short still gives a grid") {
    GemmGrid grid = whole_grid();
    grid.clocks = {};
    std::erase_if(grid.points, [](const GridPoint& p) { return p.kind != "bf16"; });
    std::erase_if(grid.ceilings,
                  [](const GridCeiling& c) { return c.what.starts_with("tensor") || c.when == "end"; });
    grid.host_copy = {};
    grid.qkv.clear();
    grid.groups.clear();
    grid.roofs = roofs_of(grid);
    const GemmGrid back = grid_in(gemm_grid_json(grid));
    CHECK(back.clocks.sm_mhz_median == 0);
    CHECK(back.roofs.fp8.tflops == 0);
    CHECK(back.roofs.bf16.tflops > 0);
    CHECK(back.host_copy.up_ms == 0);
    CHECK(back.qkv.empty());
}

TEST_CASE("a recording takes the grid in as one of its results") {
    const std::string file =
        R"({"gpu": "NVIDIA H200", "driver": "580", "cuda": "13.0", "date": "2026-11-22", "command": "c", "results": [)" +
        whole_json() + "]}";
    const Recording recording = parse_recording(file, "assets/recordings/h200.json");
    CHECK(recording.id == "h200");
    REQUIRE(recording.grid);
    CHECK(recording.grid->points.size() == 1080);
    std::string broken = file;
    broken.replace(broken.find("\"drift_pct\":-1.2"), 16, "\"drift_pct\":null");
    CHECK_THROWS_WITH_AS(parse_recording(broken, "h200.json"), doctest::Contains("'results[0].drift_pct'"),
                         Error);
}

TEST_CASE("a recording takes in the blocks of a transformer, the narrower ones first") {
    const std::string arm =
        R"({"recipe": "RECIPE", "median_ms": MS, "iqr_ms": 0.1, "attention": "cuDNN 9.19", "memory_bytes": 5e9,
            "parts_ms": {"GEMM": 8.4, "casts": 0.9}})";
    const auto with = [&](std::string recipe, std::string ms) {
        std::string out = arm;
        out.replace(out.find("RECIPE"), 6, recipe);
        return out.replace(out.find("MS,"), 2, ms);
    };
    const auto blocks = [&](int d, const std::string& sizes) {
        return R"({"bench": "blocks", "date": "2026-11-23", "batch": 4, "sizes": {"d": )" +
               std::to_string(d) + sizes + R"(}, "arms": [)" + with("bf16", "21.1") + "," +
               with("delayed", "13.6") + "]}";
    };
    const auto file = [&](const std::string& results) {
        return R"({"gpu": "NVIDIA H200", "driver": "580", "cuda": "13.0", "date": "2026-11-23", "command": "record",
                   "results": [)" +
               results + "]}";
    };
    const std::string sizes = R"(, "blocks": 1, "context": 2048)";
    const Recording recording =
        parse_recording(file(blocks(4096, sizes) + "," + blocks(768, sizes)), "a/x.json");
    REQUIRE(recording.blocks.size() == 2);
    CHECK(recording.blocks[0].name() == "1 block, d 768");
    CHECK(recording.blocks[1].attention == "cuDNN 9.19");
    CHECK(recording.blocks[1].step.speedup("delayed") == doctest::Approx(21.1 / 13.6));
    CHECK(recording.blocks[1].step.find("delayed")->part_ms("GEMM") == 8.4);
    CHECK_THROWS_WITH_AS(parse_recording(file(blocks(768, R"(, "blocks": 1)")), "x.json"),
                         doctest::Contains("results[0].sizes.context"), Error);
}

TEST_CASE("every shipped recording is whole, has an id and the usual one first") {
    const std::vector<Recording> all = load_recordings();
    REQUIRE_FALSE(all.empty());
    CHECK(all.front().id == "h200");
    CHECK(load_recording()->id == "h200");
    for (const Recording& recording : all) {
        CHECK_FALSE(recording.steps.empty());
        for (const RecordedStep& step : recording.steps) {
            CHECK(recording.step(step.layers, step.batch) != nullptr);
            for (const RecordedArm& arm : step.arms) {
                CHECK(arm.q1_ms <= arm.median_ms);
                CHECK(arm.median_ms <= arm.q3_ms);
                CHECK(arm.memory_bytes > 0);
                CHECK(arm.part_ms("GEMM") > 0);
                CHECK(arm.part_ms("no such part") == 0);
            }
        }
    }
}

TEST_CASE("a recipe's products are of the kind that the trainer multiplies") {
    LayerProbe probe;
    CHECK(kind_of(probe, "fprop") == "tensor-fast");
    CHECK(kind_of(probe, "dgrad") == "tensor");
    probe.fast_accum = FastAccum::all;
    CHECK(kind_of(probe, "wgrad") == "tensor-fast");
    probe.fast_accum = FastAccum::none;
    CHECK(kind_of(probe, "fprop") == "tensor");
    probe.recipe = "block128";
    CHECK(kind_of(probe, "fprop") == "block128");
    probe.recipe = "rowwise";
    CHECK(kind_of(probe, "fprop") == "row");
}

TEST_CASE("the CPU says that it has no times of FP8 products") {
    const auto cpu = cpu_backend();
    CHECK_THROWS_WITH_AS(cpu->measure_layer({}, {}), doctest::Contains("the CPU has no times"), Error);
    CHECK_THROWS_WITH_AS(cpu->measure_grid({}, {}), doctest::Contains("measures a GPU"), Error);
}
