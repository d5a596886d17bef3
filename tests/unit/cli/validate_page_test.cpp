// The page of `validate --report`, of a report in memory.
#include "validate_page.h"

#include "app/cli/validate/report_page.h"
#include "app/cli/validate/report_parts.h"
#include "core/scaling/recipe_lists.h"

using namespace fp8lab;

namespace {

// A report of a machine with a GPU, as the verb makes it.
json report_with_gpu() {
    json out = {
        {"provenance", "tensor-core"},
        {"device", "NVIDIA <H100>"},
        {"version", "0.1.0"},
        {"seed", 0},
        {"date", "2026-11-27"},
        {"passed", false},
        {"complete", true},
        {"checks", {{{"name", "a check"}, {"passed", false}, {"found", "3"}, {"expected", "0 & 1"}}}}};
    out["machine"] = {
        {"cpu", {{"name", "CPU"}, {"threads", 2}, {"vector_targets", {"AVX2"}}}},
        {"gpu",
         {{"usable", true},
          {"name", "NVIDIA <H100>"},
          {"facts", {{"driver", "580"}}},
          {"modes", {{{"name", "rows"}, {"available", false}, {"refusal", "not supported"}}}}}}};
    out["recipes"] = cli::train_recipes();
    out["gpu_against_cpu"] = {{"compared", true},
                              {"arms",
                               {{{"recipe", "bf16"},
                                 {"cpu_first_loss", 1.5},
                                 {"cpu_tail_loss", 0.123456},
                                 {"gpu_first_loss", 1.625},
                                 {"gpu_tail_loss", 0.123457},
                                 {"difference_pct", 0.00081},
                                 {"provenance", "tensor-core"}},
                                {{"recipe", "int8"},
                                 {"cpu_first_loss", 2.5},
                                 {"cpu_tail_loss", nullptr},
                                 {"refusal", "int8 <is> not trained"}}}}};
    out["speed"] = {{"measured", true},
                    {"layers", {1024, 4096, 1024}},
                    {"batch", 4096},
                    {"recording", {{"gpu", "NVIDIA H200"}, {"date", "2026-11-22"}, {"same_card", false}}},
                    {"arms",
                     {{{"recipe", "bf16"},
                       {"median_ms", 0.75},
                       {"iqr_ms", 0.0125},
                       {"recorded_ms", 0.5},
                       {"of_recorded", 1.5},
                       {"memory_bytes", 123456789}}}}};
    out["memory"] = {{"free_bytes", 1e10}, {"peak_bytes", 2e8}, {"recipes_bytes", 3e7}, {"gpu_bytes", 8e10}};
    return out;
}

}  // namespace

TEST_CASE("the report trains every recipe that trains, and its page has every number of it exactly") {
    const json report = report_with_gpu();
    const auto rows = static_cast<std::size_t>(std::ranges::count_if(recipe_rows(), &RecipeRow::trains));
    CHECK(report["recipes"]["arms"].size() == rows);
    check_numbers(cli::validation_page(report), report);
}

TEST_CASE("the page of a machine with a GPU has what differs, what is refused and what was recorded") {
    const json report = report_with_gpu();
    const std::string page = cli::validation_page(report);
    check_loads_nothing(page);
    check_numbers(page, report);
    for (const char* part :
         {"NVIDIA &lt;H100&gt;", "int8 &lt;is&gt; not trained", "no: not supported", "another card",
          "expected 0 &amp; 1", "data-value=\"0.00081\"", "data-value=\"1.5\"", "data-value=\"123456789\""}) {
        CAPTURE(part);
        CHECK(page.find(part) != std::string::npos);
    }
}

TEST_CASE("a part that a signal kept from being measured is said") {
    json report = report_with_gpu();
    report.erase("speed");
    report["complete"] = false;
    CHECK(cli::validation_page(report).find("Ended by a signal before it began.") != std::string::npos);
}

TEST_CASE("the nearest recording is that of the same card, else the first") {
    std::vector<Recording> recordings(2);
    recordings[0].gpu = "NVIDIA H200", recordings[1].gpu = "NVIDIA H100 80GB HBM3";
    CHECK(cli::nearest_recording(recordings, "NVIDIA H100 80GB HBM3") == &recordings[1]);
    CHECK(cli::nearest_recording(recordings, "NVIDIA L40S") == recordings.data());
    CHECK(cli::nearest_recording({}, "NVIDIA H100") == nullptr);
}
