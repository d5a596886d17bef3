// fp8lab convert IN --to LAYOUT -o DIR [--keep NAME,..] [--json]: a model written again in another published layout.
#include "core/convert/convert.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/base/names.h"
#include "core/base/stop.h"
#include "core/base/units.h"
#include "core/files/console.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/json/read_json.h"
#include "core/threads/ask.h"

namespace fp8lab::cli {
namespace {

struct ConvertOptions {
    std::string file, out;
    ConvertSpec spec;
    bool json = false;
};

// Why tensors stay, and how many.
std::map<std::string, std::size_t> stays_of(const Conversion& conversion) {
    std::map<std::string, std::size_t> out;
    for (const ConvertedTensor& each : conversion.tensors())
        if (!each.stays.empty()) ++out[std::string(each.stays)];
    return out;
}

nlohmann::json json_of(const ConvertOptions& options, const Conversion& conversion) {
    nlohmann::json out = json_header(cpu_backend()->device());
    out["file"] = options.file;
    out["out"] = options.out;
    out["to"] = options.spec.to;
    out["bytes_read"] = conversion.store().bytes();
    out["bytes_written"] = conversion.bytes();
    out["cast"] = conversion.cast();
    out["beyond_bf16"] = conversion.beyond_bf16();
    out["files"] = nlohmann::json::array();
    for (const ConvertedFile& file : conversion.files())
        out["files"].push_back({{"name", file.name}, {"bytes", file.size}});
    out["other_files"] = conversion.beside();
    out["not_copied"] = conversion.not_copied();
    out["left_out"] = conversion.left_out();
    out["tensors"] = nlohmann::json::array();
    for (const ConvertedTensor& each : conversion.tensors()) {
        nlohmann::json entry = {{"name", each.name},
                                {"from", each.from->name},
                                {"dtype", each.codes.dtype},
                                {"shape", each.from->shape},
                                {"file", conversion.files()[each.file].name}};
        if (!each.stays.empty()) entry["stays"] = each.stays;
        if (!each.group.empty() && !each.global.name.empty()) entry["shares_global_scale"] = each.group;
        out["tensors"].push_back(std::move(entry));
    }
    return out;
}

std::string text_of(const ConvertOptions& options, const Conversion& conversion) {
    const auto quoted = [](const std::string& name) { return printable(quote_from(name)); };
    std::string out = fmt::format("{}: {} -> {}\n", printable(options.out),
                                  format_bytes(conversion.store().bytes()), format_bytes(conversion.bytes()));
    if (const std::size_t cast = conversion.cast(); cast > 0)
        out += fmt::format("cast to {}: {} tensors\n", options.spec.to, with_commas(cast));
    for (const auto& [why, count] : stays_of(conversion))
        out += why == "not a float" ? fmt::format("copied, {}: {}\n", why, with_commas(count))
               : why == "bf16"      ? fmt::format("in BF16: {} tensors\n", with_commas(count))
                                    : fmt::format("in BF16, {}: {}\n", why, with_commas(count));
    if (!conversion.left_out().empty())
        out += fmt::format("left out, of the old layout: {}\n", some_names(conversion.left_out(), quoted));
    if (!conversion.beside().empty())
        out += fmt::format("other files: {}\n", some_names(conversion.beside(), quoted));
    if (!conversion.not_copied().empty())
        out += fmt::format("not copied: {}\n", some_names(conversion.not_copied(), quoted));
    return out;
}

void convert(const ConvertOptions& options) {
    find_convert_target(options.spec.to);
    Outputs outputs;
    outputs.reads(options.file);
    outputs.prints(options.json ? "--json" : "stdout");
    outputs.writes_into("-o", options.out);
    const auto store = std::make_shared<const TensorStore>(options.file);
    Conversion conversion(store, options.spec);
    {
        const Interruptible keeps;
        ProgressLine progress;
        const AskBetween ask(progress.asker());
        std::size_t done = 0;
        try {
            conversion.write("-o", options.out, [&](const ConvertProgress& at) {
                done = at.done;
                if (progress.due())
                    progress.at(
                        fmt::format("convert: {} of {} tensors, {:.0f} %", at.done, at.all, 100 * at.part));
            });
        } catch (const Interrupted&) {
            end_if_interrupted(
                fmt::format("after {} of {} tensors; nothing is written", done, conversion.tensors().size()));
        }
    }
    for (const std::string& note : store->notes()) tell("convert: " + note);
    if (const auto beyond = conversion.beyond_bf16(); beyond > 0)
        tell(fmt::format("convert: {} {} beyond BF16: {} Inf", with_commas(static_cast<std::size_t>(beyond)),
                         beyond == 1 ? "value is" : "values are", beyond == 1 ? "it became" : "they became"));
    if (options.json)
        print_json(json_of(options, conversion));
    else
        write_stdout(text_of(options, conversion));
}

}  // namespace

void add_convert(CLI::App& app, Globals&) {
    const auto options = std::make_shared<ConvertOptions>();
    CLI::App* verb = app.add_subcommand("convert", "A model written again in another published layout");
    verb->add_option("file", options->file, ".safetensors, .safetensors.index.json, .npy or .npz")
        ->required();
    verb->add_option("--to", options->spec.to, "bf16, e4m3-block128, e4m3-row, mxfp8, nvfp4 or mxfp4")
        ->required();
    verb->add_option("-o", options->out, "the folder, which must not be there yet")->required();
    verb->add_option("--keep", options->spec.keep, "NAME[,NAME...]: what has it in its name stays in BF16")
        ->delimiter(',');
    verb->add_flag("--json", options->json, "as JSON");
    verb->callback([options] { convert(*options); });
}

}  // namespace fp8lab::cli
