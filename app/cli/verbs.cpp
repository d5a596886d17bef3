#include <array>

#include "app/cli/verb.h"

namespace fp8lab::cli {

// In the order of --help.
void add_doctor(CLI::App& app, Globals& globals);
void add_list(CLI::App& app, Globals& globals);
void add_formats(CLI::App& app, Globals& globals);
void add_codes(CLI::App& app, Globals& globals);
void add_code(CLI::App& app, Globals& globals);
void add_cast(CLI::App& app, Globals& globals);
void add_decode(CLI::App& app, Globals& globals);
void add_quantize(CLI::App& app, Globals& globals);
void add_inspect(CLI::App& app, Globals& globals);
void add_verify(CLI::App& app, Globals& globals);
void add_convert(CLI::App& app, Globals& globals);
void add_simulate(CLI::App& app, Globals& globals);
void add_watch(CLI::App& app, Globals& globals);
void add_train(CLI::App& app, Globals& globals);
void add_generate(CLI::App& app, Globals& globals);
void add_infer(CLI::App& app, Globals& globals);
void add_draft(CLI::App& app, Globals& globals);
void add_mismatch(CLI::App& app, Globals& globals);
void add_bench(CLI::App& app, Globals& globals);
void add_run(CLI::App& app, Globals& globals);
void add_memory(CLI::App& app, Globals& globals);
void add_plan(CLI::App& app, Globals& globals);
void add_check(CLI::App& app, Globals& globals);
void add_report(CLI::App& app, Globals& globals);
void add_manual(CLI::App& app, Globals& globals);
void add_screenshot(CLI::App& app, Globals& globals);
void add_validate(CLI::App& app, Globals& globals);

std::span<const AddVerb> verbs() {
    static constexpr std::array kVerbs = {
        add_doctor,   add_list,    add_formats, add_codes,    add_code,       add_cast,     add_decode,
        add_quantize, add_inspect, add_convert, add_verify,   add_simulate,   add_watch,    add_train,
        add_generate, add_infer,   add_draft,   add_mismatch, add_bench,      add_run,      add_memory,
        add_plan,     add_check,   add_report,  add_manual,   add_screenshot, add_validate,
    };
    return kVerbs;
}

}  // namespace fp8lab::cli
