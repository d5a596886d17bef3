// fp8lab report -o OUT.html [--bundle OUT.f8lab] [--student NAME]: what was done, to be read and to be handed
// in.
#include "labs/grading/report.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "app/cli/verb.h"
#include "core/base/error.h"
#include "core/files/console.h"
#include "core/files/files.h"
#include "core/files/outputs.h"
#include "core/files/progress_line.h"
#include "core/threads/ask.h"
#include "labs/grading/submission.h"

namespace fp8lab::cli {

namespace {

struct ReportOptions {
    std::string html, bundle, student;
};

// A typing error must not replace a file that the report is made from.
void declare_profile(Outputs& outputs, const ProfileFolders& folders) {
    std::error_code none;  // no exercise was done yet
    for (const auto& entry : std::filesystem::directory_iterator(folders.data / "exercises", none))
        outputs.reads(entry.path());
}

std::string page_of(const Bundle& submission) {
    ProgressLine progress;
    const AskBetween ask(progress.asker());
    return report_html(submission, [&](std::size_t done, std::size_t of) {
        progress.at(fmt::format("report: {} of {} exercises repeated", done, of));
    });
}

void report(const ReportOptions& options, const Globals& globals) {
    if (options.html.empty() && options.bundle.empty())
        throw usage_error("report", "nothing to write: name a file with -o or --bundle");
    if (printable(options.student) != options.student)
        throw usage_error("--student", "the name has a control character or is not UTF-8");
    const ProfileFolders folders = profile_of(globals);
    Outputs outputs;
    declare_profile(outputs, folders);
    if (!options.html.empty()) outputs.writes("-o", options.html, Holds::page);
    if (!options.bundle.empty()) outputs.writes("--bundle", options.bundle, Holds::submission);
    const Bundle submission = make_submission(folders, options.student, tell);
    // Both are made before one is written.
    const std::string html = options.html.empty() ? "" : page_of(submission);
    if (!options.bundle.empty()) write_file(options.bundle, bundle_text(submission));
    if (!options.html.empty()) write_file(options.html, html);
}

}  // namespace

void add_report(CLI::App& app, Globals& globals) {
    const auto options = std::make_shared<ReportOptions>();
    CLI::App* verb = app.add_subcommand(
        "report", "The profile's exercises as one HTML file, and as a submission that check grades");
    verb->add_option("-o", options->html, "HTML file; - is stdout");
    verb->add_option("--bundle", options->bundle, "submission to hand in, .f8lab; - is stdout");
    verb->add_option("--student", options->student, "student's name, in both files");
    verb->callback([options, &globals] { report(*options, globals); });
}

}  // namespace fp8lab::cli
