#include "labs/grading/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/base/markup.h"
#include "core/base/units.h"
#include "core/figure/svg.h"
#include "core/files/files.h"
#include "labs/grading/page.h"
#include "labs/grading/recheck.h"

namespace fp8lab {
namespace {

std::string safe(std::string_view text) { return escaped_markup(text); }

std::string ratio(double predicted, double measured) {
    if (!(predicted > 0) || !(measured > 0)) return format_number(measured - predicted, 2, true);
    const double times = measured / predicted;
    return times >= 1 ? format_number(times, 2, true) + "\u00d7"
                      : "\u00f7" + format_number(1 / times, 2, true);
}

struct Done {  // of one exercise
    std::optional<Evidence> evidence;
    Recheck recheck;
    const Prediction* prediction = nullptr;  // where it is not passed
};

class Report {
  public:
    Report(const Bundle& submission, const std::function<void(std::size_t, std::size_t)>& told)
        : submission_(submission) {
        for (const std::string& text : submission.evidence) {
            if (told) told(done_.size(), submission.evidence.size());
            Evidence evidence = parse_evidence(text, "evidence");
            const std::string id = evidence.exercise;
            Recheck found = again_(evidence, false);
            done_[id] = {std::move(evidence), std::move(found), nullptr};
        }
        for (const auto& [id, prediction] : submission.predictions) done_[id].prediction = &prediction;
    }

    std::string page() {
        head();
        summary();
        for (const LabEntry& entry : lab_registry()) lab(*entry.make());
        foot();
        return std::move(out_);
    }

  private:
    template <class... Args>
    void add(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    }

    void head();
    void summary();
    void lab(const Lab& lab);
    void exercise(const Exercise& exercise, const Done& done);
    void passed(const Exercise& exercise, const Evidence& evidence, const Recheck& recheck);
    void prediction(const Exercise& exercise, const Prediction& prediction,
                    const std::vector<double>& measured);
    void conditions(const Exercise& exercise, const Evidence& evidence);
    void figures(const Exercise& exercise, const Evidence& evidence);
    void provenance(const Evidence& evidence, const Recheck& recheck);
    void details(const Evidence& evidence);
    void foot();
    bool is_passed(const std::string& id) const {
        const auto found = done_.find(id);
        return found != done_.end() && found->second.evidence.has_value();
    }

    const Bundle& submission_;
    Rechecker again_;
    std::map<std::string, Done, std::less<>> done_;
    std::string out_;
};

void Report::head() {
    const std::string who = submission_.student.empty() ? "Report" : submission_.student;
    out_ += page_begin(who);
}

void Report::summary() {
    std::size_t all = 0, passed = 0, predicted = 0, explained = 0;
    std::string rows;
    for (const LabEntry& entry : lab_registry()) {
        const auto lab = entry.make();
        if (lab->exercises().empty()) continue;
        std::string marks;
        for (const Exercise& exercise : lab->exercises()) {
            ++all;
            const auto found = done_.find(exercise.id);
            const bool begun = found != done_.end(), ticked = is_passed(exercise.id);
            passed += ticked ? 1 : 0;
            if (ticked) predicted += found->second.evidence->prediction.skipped ? 0 : 1;
            if (ticked) explained += found->second.evidence->explanation.empty() ? 0 : 1;
            const char* state = ticked ? "passed" : begun ? "predicted" : "open";
            marks += begun ? fmt::format("<a class=\"mark {}\" href=\"#{}\" title=\"{}: {}\"></a>", state,
                                         safe(exercise.id), safe(exercise.title), state)
                           : fmt::format("<span class=\"mark {}\" title=\"{}: {}\"></span>", state,
                                         safe(exercise.title), state);
        }
        rows += fmt::format("<tr><th>L{}</th><td>{}</td><td class=\"marks\">{}</td></tr>\n",
                            lab->info().number, safe(lab->info().title), marks);
    }
    add("<header>\n<p class=\"kicker\">FP8 Lab report</p>\n<h1 dir=\"auto\">{}</h1>\n"
        "<p class=\"when\">{}</p>\n<dl class=\"counts\">\n"
        "<div><dt>passed</dt><dd data-count=\"passed\">{} <small>of {}</small></dd></div>\n"
        "<div><dt>predicted first</dt><dd data-count=\"predicted\">{}</dd></div>\n"
        "<div><dt>explained</dt><dd data-count=\"explained\">{}</dd></div>\n</dl>\n</header>\n"
        "<section class=\"overview\">\n<table class=\"labs\">\n{}</table>\n<dl class=\"machine\">\n",
        safe(submission_.student.empty() ? "Name not given" : submission_.student), safe(submission_.at),
        passed, all, predicted, explained, rows);
    for (const auto& [name, fact] : submission_.machine)
        add("<div><dt>{}</dt><dd>{}</dd></div>\n", safe(name), safe(fact));
    out_ += "</dl>\n</section>\n";
}

void Report::lab(const Lab& lab) {
    const auto begun = [&](const Exercise& exercise) { return done_.contains(exercise.id); };
    if (std::ranges::none_of(lab.exercises(), begun)) return;
    const LabInfo& info = lab.info();
    add("<section class=\"lab\">\n<h2><span class=\"no\">L{}</span> {}</h2>\n<p class=\"question\">{}</p>\n",
        info.number, safe(info.title), safe(info.question));
    for (const Exercise& one : lab.exercises())
        if (begun(one)) exercise(one, done_.find(one.id)->second);
    out_ += "</section>\n";
}

void Report::exercise(const Exercise& exercise, const Done& done) {
    const char* state = !done.evidence          ? "not passed yet"
                        : done.recheck.stands() ? "passed"
                                                : "does not stand";
    add("<article id=\"{0}\" data-exercise=\"{0}\">\n<h3><span class=\"no\">{0}</span> {1} "
        "<span class=\"state\">{2}</span></h3>\n<p>{3}</p>\n",
        safe(exercise.id), safe(exercise.title), state, safe(exercise.question));
    if (done.evidence)
        passed(exercise, *done.evidence, done.recheck);
    else if (done.prediction)
        prediction(exercise, *done.prediction, {});
    out_ += "</article>\n";
}

void Report::passed(const Exercise& exercise, const Evidence& evidence, const Recheck& recheck) {
    if (!exercise.predict.empty()) prediction(exercise, evidence.prediction, evidence.measured);
    conditions(exercise, evidence);
    figures(exercise, evidence);
    if (!evidence.explanation.empty())
        add("<h4>Why, in the student\u2019s words</h4>\n<blockquote dir=\"auto\">{}</blockquote>\n",
            safe(evidence.explanation));
    add("<p class=\"why\">{}</p>\n", safe(exercise.explanation));
    provenance(evidence, recheck);
    details(evidence);
}

void Report::prediction(const Exercise& exercise, const Prediction& prediction,
                        const std::vector<double>& measured) {
    add("<h4>Prediction against result</h4>\n<p class=\"ask\">{}</p>\n", safe(exercise.predict));
    if (prediction.skipped) {
        out_ += "<p class=\"muted\">The prediction was skipped.</p>\n";
        return;
    }
    const auto* curve = std::get_if<CurvePrediction>(&exercise.prediction);
    const auto* choice = std::get_if<ChoicePrediction>(&exercise.prediction);
    const auto* numeric = std::get_if<NumberPrediction>(&exercise.prediction);
    const auto words = [&](double value) {
        if (!choice) return number_markup(value, numeric ? numeric->unit : "");
        const bool valid = value >= 0 && value < static_cast<double>(choice->choices.size());
        return fmt::format("<span class=\"n\" data-value=\"{}\">{}</span>", shortest(value),
                           valid ? safe(choice->choices[static_cast<std::size_t>(value)]) : "\u2013");
    };
    add("<table class=\"numbers prediction\">\n<tr>{}<th>predicted</th><th>the lab gives</th>{}</tr>\n",
        curve ? fmt::format("<th>{}</th>", safe(curve->x.label)) : "", choice ? "" : "<th>off by</th>");
    for (std::size_t i = 0; i < prediction.values.size(); ++i) {
        const bool known = i < measured.size();
        add("<tr>{}<td data-of=\"predicted\">{}</td><td data-of=\"measured\">{}</td>{}</tr>\n",
            curve ? fmt::format("<td>{}</td>", number_markup(curve->at[i % curve->at.size()])) : "",
            words(prediction.values[i]), known ? words(measured[i]) : "not yet",
            choice ? "" : fmt::format("<td>{}</td>", known ? ratio(prediction.values[i], measured[i]) : ""));
    }
    out_ += "</table>\n";
}

void Report::conditions(const Exercise& exercise, const Evidence& evidence) {
    out_ += "<h4>Result</h4>\n<table class=\"numbers conditions\">\n";
    if (!exercise.columns.empty()) {
        out_ += "<tr><th></th>";
        for (const std::string& head : exercise.columns) add("<th>{}</th>", safe(head));
        out_ += "<th></th></tr>\n";
    }
    for (const Condition& condition : evidence.conditions) {
        add("<tr><td>{}</td>", safe(condition.text));
        const std::size_t columns = std::max<std::size_t>(exercise.columns.size(), 1);
        for (std::size_t i = 0; i < columns; ++i)
            add("<td data-of=\"condition\">{}</td>",
                i < condition.values.size() ? safe(condition.values[i]) : "");
        add("<td>{}</td></tr>\n", condition.met ? "yes" : "not yet");
    }
    out_ += "</table>\n";
}

// The lab as it stood when the exercise was passed, with what was predicted laid over its figure.
void Report::figures(const Exercise& exercise, const Evidence& evidence) {
    std::vector<Figure> all;
    try {
        const auto lab = find_lab(evidence.lab).make();
        replay(*lab, exercise, evidence.groups);
        all = lab->figures();
    } catch (const std::exception& error) {
        add("<p class=\"fault\">The figures could not be drawn: {}</p>\n", safe(error.what()));
        return;
    }
    const auto* curve = std::get_if<CurvePrediction>(&exercise.prediction);
    const auto& predicted = evidence.prediction;
    if (curve && !predicted.skipped && predicted.values.size() == curve->lines.size() * curve->at.size()) {
        const auto about = std::ranges::find(all, curve->figure, &Figure::id);
        if (about != all.end()) {
            std::rotate(all.begin(), about, about + 1);  // it comes first
            auto from = predicted.values.begin();
            for (std::size_t line = 0; line < curve->lines.size(); ++line) {
                const auto to = from + static_cast<std::ptrdiff_t>(curve->at.size());
                all.front().line(curve->lines[line] + ", predicted", data(curve->at), data({from, to}),
                                 {.color = {Role::text},
                                  .dash = line == 0 ? Dash::dash : Dash::dot,
                                  .marker = Marker::ring});
                from = to;
            }
        }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i == 1)
            add("<details class=\"more\"><summary>{}</summary>\n",
                all.size() == 2 ? "One more figure" : fmt::format("{} more figures", all.size() - 1));
        add("<figure>{}</figure>\n",
            to_svg(all[i], {.height = 360, .id_prefix = fmt::format("{}-{}-", exercise.id, i)}));
    }
    if (all.size() > 1) out_ += "</details>\n";
}

void Report::provenance(const Evidence& evidence, const Recheck& recheck) {
    add("<dl class=\"evidence\">\n<div><dt>evidence</dt><dd data-of=\"hash\">{}</dd></div>\n",
        scene_hash(evidence));
    const std::pair<const char*, std::string> facts[] = {{"seed", evidence.seed},
                                                         {"provenance", evidence.provenance},
                                                         {"device", evidence.device},
                                                         {"passed", evidence.at},
                                                         {"hints opened", std::to_string(evidence.hints)},
                                                         {"version", evidence.version}};
    for (const auto& [name, fact] : facts)
        if (!fact.empty()) add("<div><dt>{}</dt><dd>{}</dd></div>\n", name, safe(fact));
    add("<div><dt>repeated for this report</dt><dd>{}</dd></div>\n</dl>\n",
        recheck.stands() ? "every value is the same" : "it does not stand");
    for (const std::string& problem : recheck.problems) add("<p class=\"fault\">{}</p>\n", safe(problem));
}

void Report::details(const Evidence& evidence) {
    add("<details><summary>All {} values, and what was done</summary>\n<table class=\"numbers values\">\n",
        evidence.values.size());
    for (const Metric& metric : evidence.values)
        add("<tr><td>{}</td><td data-metric=\"{}\">{}</td></tr>\n", safe(metric.name), safe(metric.name),
            metric.text.empty() ? number_markup(metric.value) : safe(metric.text));
    out_ += "</table>\n<ol class=\"events\">\n";
    for (const Evidence::EventGroup& group : evidence.groups)
        for (const Event& event : group.events) {
            const std::string what =
                event.kind == Event::Kind::act ? event.name : event.name + " = " + event.value;
            constexpr const char* kWords[] = {"set", "do", "answer"};
            add("<li>{} {}</li>\n", kWords[static_cast<std::size_t>(event.kind)], safe(what));
        }
    out_ += "</ol>\n</details>\n";
}

void Report::foot() {
    add("<footer>Made by FP8 Lab {}. Numbers are shown with 4 significant digits; the evidence inside this "
        "file has "
        "them exactly, and <code>fp8lab check</code> judges it again.</footer>\n</main>\n",
        safe(submission_.version));
    // JSON has < in strings only; escaped, no text in it can end the element.
    out_ += "<script type=\"application/json\" id=\"submission\">\n";
    for (const char c : bundle_text(submission_)) c == '<' ? void(out_ += "\\u003c") : void(out_ += c);
    out_ += "</script>\n</body>\n</html>\n";
}

}  // namespace

std::string report_html(const Bundle& submission,
                        const std::function<void(std::size_t done, std::size_t of)>& told) {
    return Report(submission, told).page();
}

}  // namespace fp8lab
