#include "app/cli/validate/report_page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/markup.h"
#include "core/base/units.h"
#include "labs/grading/page.h"

namespace fp8lab::cli {
namespace {

using Json = nlohmann::json;

// A value of the report as a cell shows it; an en dash where there is none.
std::string shown(const Json& value, std::string_view unit = {}) {
    if (value.is_number()) return number_markup(value.get<double>(), unit);
    if (value.is_string()) return escaped_markup(value.get<std::string>());
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    return "\u2013";
}

std::string bytes_shown(const Json& value) {
    if (!value.is_number()) return shown(value);
    const auto bytes = value.get<double>();
    return fmt::format("<span class=\"n\" data-value=\"{}\">{}</span>", shortest(bytes),
                       format_bytes(static_cast<std::uint64_t>(bytes)));
}

class Page {
  public:
    explicit Page(const Json& report) : report_(report) {}

    std::string text() {
        head();
        checks();
        recipes();
        against_cpu();
        speed();
        memory();
        add("<footer>Made by FP8 Lab {}. Numbers are shown with 4 significant digits; the same command with "
            "a "
            "name that ends in .json writes them exactly.</footer>\n</main>\n</body>\n</html>\n",
            shown(report_["version"]));
        return std::move(out_);
    }

  private:
    template <class... Args>
    void add(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    }
    void section(std::string_view title, std::string_view what) {
        add("<section class=\"lab\">\n<h2>{}</h2>\n<p class=\"question\">{}</p>\n", title, what);
    }
    // Ends the section where the part is missing, or says why there is none.
    bool there(const char* part, const char* is_there) {
        const bool missing = !report_.contains(part);
        if (!missing && report_[part].value(is_there, true)) return true;
        add("<p class=\"muted\">{}</p>\n</section>\n",
            missing ? std::string("Ended by a signal before it began.") : shown(report_[part]["reason"]));
        return false;
    }
    void table(std::initializer_list<const char*> heads) {
        out_ += "<div class=\"scroll\">\n<table class=\"numbers values\">\n<tr>";
        for (const char* head : heads) add("<th>{}</th>", head);
        out_ += "</tr>\n";
    }
    void row(std::initializer_list<std::string> cells) {
        out_ += "<tr>";
        for (const std::string& cell : cells) add("<td>{}</td>", cell);
        out_ += "</tr>\n";
    }
    void end_table() { out_ += "</table>\n</div>\n</section>\n"; }

    void head();
    void machine();
    void checks();
    void recipes();
    void against_cpu();
    void speed();
    void memory();

    const Json& report_;
    std::string out_;
};

void Page::head() {
    out_ += page_begin("validation");
    add("<header>\n<p class=\"kicker\">FP8 Lab validation</p>\n<h1>{}</h1>\n<p class=\"when\">{} \u00b7 {} "
        "\u00b7 "
        "version {}</p>\n",
        shown(report_["device"]), shown(report_["date"]), shown(report_["provenance"]),
        shown(report_["version"]));
    if (!report_["passed"].get<bool>())
        out_ += "<p class=\"fault\">A check failed, or checks were not done.</p>\n";
    if (!report_["complete"].get<bool>()) out_ += "<p class=\"fault\">Ended by a signal.</p>\n";
    out_ += "</header>\n";
    machine();
}

void Page::machine() {
    const Json &cpu = report_["machine"]["cpu"], &gpu = report_["machine"]["gpu"];
    out_ += "<dl class=\"evidence\">\n";
    const auto fact = [&](std::string_view name, const std::string& value) {
        add("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped_markup(name), value);
    };
    fact("CPU", shown(cpu["name"]));
    std::string targets;
    for (const Json& target : cpu["vector_targets"]) targets += (targets.empty() ? "" : " ") + shown(target);
    fact("vector instructions", targets);
    fact("GPU", gpu["usable"].get<bool>() ? shown(gpu["name"]) : "none: " + shown(gpu["reason"]));
    if (gpu.contains("facts"))
        for (const auto& [name, value] : gpu["facts"].items()) fact(name, shown(value));
    if (gpu.contains("modes"))
        for (const Json& mode : gpu["modes"])
            fact(mode["name"].get<std::string>(),
                 mode["available"].get<bool>() ? "yes" : "no: " + shown(mode["refusal"]));
    out_ += "</dl>\n";
}

void Page::checks() {
    section("Self-checks",
            "Golden edges, round trips of all codes, vector against scalar, and on a GPU its casts "
            "and products against the CPU.");
    const bool passed = report_["passed"];
    add("<details{}>\n<summary>{}</summary>\n", passed ? "" : " open",
        passed ? fmt::format("All {} of them passed.", report_["checks"].size())
               : "Not all of them passed, or were done.");
    table({"check", "result", ""});
    for (const Json& check : report_["checks"]) {
        const bool met = check["passed"];
        row({shown(check["name"]),
             shown(check["found"]) + (met ? "" : ", expected " + shown(check["expected"])),
             met ? "ok" : "<strong class=\"fault\">FAIL</strong>"});
    }
    out_ += "</table>\n</div>\n</details>\n</section>\n";
}

void Page::recipes() {
    section("Recipes on the CPU",
            "The same short training under every recipe. Tail loss: the mean of the last steps. Loss gap: "
            "against bf16. The checksum is of the losses of all steps; it is the same in every call of this "
            "version on this processor.");
    if (!there("recipes", "trained")) return;
    const Json& recipes = report_["recipes"];
    add("<p class=\"ask\"><code>fp8lab train {}</code></p>\n", shown(recipes["command_line"]));
    table({"recipe", "first loss", "tail loss", "loss gap, %", "worst underflow, %", "of", "ms per step",
           "checksum"});
    for (const Json& arm : recipes["arms"]) {
        const Json& worst = arm["worst_underflow"];
        const Json& stopped = arm["first_nonfinite"];
        row({shown(arm["recipe"]), shown(arm["first_loss"]),
             stopped.is_null()
                 ? shown(arm["tail_loss"])
                 : fmt::format("{} at step {}", shown(stopped["tensor"]), shown(stopped["step"])),
             shown(arm["gap_pct"]), shown(worst.is_null() ? worst : worst["mean_pct"]),
             shown(worst.is_null() ? worst : worst["tensor"]), shown(arm["step_ms"]),
             shown(arm["losses_checksum"])});
    }
    end_table();
}

void Page::against_cpu() {
    section("GPU against CPU",
            "The same trainings on both. The first loss is that of the same weights and batch; the "
            "difference is that of the tail losses.");
    if (!there("gpu_against_cpu", "compared")) return;
    table({"recipe", "first loss, CPU", "GPU", "tail loss, CPU", "GPU", "difference, %", "computed by"});
    for (const Json& arm : report_["gpu_against_cpu"]["arms"]) {
        if (arm.contains("refusal"))
            row({shown(arm["recipe"]), shown(arm["cpu_first_loss"]), "\u2013", shown(arm["cpu_tail_loss"]),
                 "\u2013", "\u2013", shown(arm["refusal"])});
        else
            row({shown(arm["recipe"]), shown(arm["cpu_first_loss"]), shown(arm["gpu_first_loss"]),
                 shown(arm["cpu_tail_loss"]), shown(arm["gpu_tail_loss"]), shown(arm["difference_pct"]),
                 shown(arm["provenance"])});
    }
    end_table();
}

void Page::speed() {
    section("Speed", "A step of an MLP, measured now, beside the recording of the nearest card.");
    if (!there("speed", "measured")) return;
    const Json& speed = report_["speed"];
    std::string layers;
    for (const Json& size : speed["layers"]) layers += (layers.empty() ? "" : ", ") + shown(size);
    const Json& recording = speed["recording"];
    add("<p class=\"ask\">Layers {}, batch {}. Recording: {}.</p>\n", layers, shown(speed["batch"]),
        recording.is_null() ? std::string("none of this shape")
                            : fmt::format("{}, {}{}", shown(recording["gpu"]), shown(recording["date"]),
                                          recording["same_card"].get<bool>() ? "" : ", another card"));
    table({"recipe", "ms per step", "IQR, ms", "recorded, ms", "times the recorded", "memory"});
    for (const Json& arm : speed["arms"])
        row({shown(arm["recipe"]), shown(arm["median_ms"]), shown(arm["iqr_ms"]), shown(arm["recorded_ms"]),
             shown(arm["of_recorded"]), bytes_shown(arm["memory_bytes"])});
    end_table();
}

void Page::memory() {
    section("Memory", "Of this process, and of the trainings above.");
    if (!there("memory", "measured")) return;
    const Json& memory = report_["memory"];
    table({"", "size"});
    row({"main memory that is free", bytes_shown(memory["free_bytes"])});
    row({"most that this process had", bytes_shown(memory["peak_bytes"])});
    row({"planned for the trainings on the CPU", bytes_shown(memory["recipes_bytes"])});
    if (memory.contains("gpu_bytes")) row({"memory of the GPU", bytes_shown(memory["gpu_bytes"])});
    end_table();
}

}  // namespace

std::string validation_page(const Json& report) { return Page(report).text(); }

}  // namespace fp8lab::cli
