#include "labs/workbench/model_scan.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/stop.h"
#include "core/json/read_json.h"
#include "core/threads/ask.h"

namespace fp8lab::workbench {
namespace {

MxRule rule_of(const std::string& id) {
    return id == "floor" ? MxRule::floor : id == "even" ? MxRule::even : MxRule::up;
}

std::optional<TensorUse> use_given(const std::string& id) {
    for (const TensorUse use : {TensorUse::w, TensorUse::x, TensorUse::dy})
        if (to_string(use) == id) return use;
    return std::nullopt;
}

std::map<std::string, TensorUse, std::less<>> uses_of(const std::string& text) {
    std::map<std::string, TensorUse, std::less<>> out;
    if (text.empty()) return out;
    const nlohmann::json uses = parse_json(text, "uses");
    if (!uses.is_object()) throw input_error("uses", "must be an object of names and w, x, dy or state");
    for (const auto& [name, use] : uses.items()) {
        const std::string id = use.is_string() ? use.get<std::string>() : "";
        const auto known = std::ranges::find(kTensorUses, id, [](TensorUse u) { return to_string(u); });
        if (known == kTensorUses.end()) throw input_error("uses", "'" + name + "' must be w, x, dy or state");
        out[name] = *known;
    }
    return out;
}

std::shared_ptr<const TensorStore> open_files(const std::string& lines) {
    std::vector<std::filesystem::path> paths;
    for (std::size_t at = 0; at <= lines.size();) {
        const std::size_t end = std::min(lines.find('\n', at), lines.size());
        if (end > at) paths.emplace_back(lines.substr(at, end - at));
        at = end + 1;
    }
    return std::make_shared<TensorStore>(TensorStore::of_files(paths));
}

}  // namespace

struct Scans::Work {
    Scan scan;
    std::unique_ptr<Scan> before = {};
    std::shared_ptr<const TensorStore> original = {};
    std::optional<Verifier> verifier = {};
    std::shared_ptr<const std::vector<std::string>> missing = {};
    std::vector<std::shared_ptr<const Verified>> verified = {};
    std::vector<std::optional<AgainstOriginal>> against = {};
    std::size_t to_verify = 0;

    void compare_with(std::shared_ptr<const TensorStore> store) {
        original = std::move(store);
        verified.resize(scan.rows().size());
        against.resize(scan.rows().size());
    }
    // The next tensor; false: there was none left.
    bool verify_next() {
        if (!original) return false;
        if (!verifier) begin_to_verify();  // looks at all names: not in a frame
        if (to_verify >= verified.size() || !verifier->shares_names()) return false;
        verify(to_verify++);
        return true;
    }
    void begin_to_verify() {
        verifier.emplace(scan.store(), *original);
        std::vector<std::string> names;
        if (verifier->shares_names())
            for (const Verified& each : verifier->missing()) names.push_back(each.tensor->name);
        missing = std::make_shared<const std::vector<std::string>>(std::move(names));
    }
    void verify(std::size_t row) {
        const StoredTensor& tensor = scan.store().tensors()[scan.rows()[row].tensor];
        if (!is_weight(tensor)) return;
        Verified found = verifier->verify(tensor);
        if (found.diagnosis && scan.rows()[row].not_scanned.empty())
            against[row] =
                against_original(scan.store(), tensor, *original, verifier->counterparts().of(tensor));
        verified[row] = std::make_shared<const Verified>(std::move(found));
    }
};

void Scans::start_worker(std::function<void()> wake) {
    wake_ = std::move(wake);
    in_window_ = true;
}

void Scans::refresh(bool, bool) {
    if (const ScanRequest wanted = request_(); asked_ != wanted) start(*(asked_ = wanted));
    const std::lock_guard lock{mutex_};
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    if (newest_) state_ = std::move(*std::exchange(newest_, std::nullopt));
}

void Scans::start(const ScanRequest& request) {
    const ScanSpec spec{.recipes = scan_recipes(rule_of(request.mx_rule)),
                        .use = use_given(request.cast_as),
                        .uses = uses_of(request.uses),
                        .unscaled_codes = request.unscaled_codes,
                        .cache = cache_};
    const auto store = open_files(request.file);
    const auto before = request.compare.empty() ? nullptr : open_files(request.compare);
    stop();  // the cache belongs to one scan at a time
    auto work = std::make_shared<Work>(Work{.scan = Scan(store, spec)});
    if (before && request.is_original)
        work->compare_with(before);
    else if (before)
        work->before = std::make_unique<Scan>(before, spec);
    preferred_ = -1;
    publish(*work, false, false);
    running_ = true;
    if (!in_window_) return this->work(*work, {});
    worker_.emplace([this, work](const std::stop_token& token) {
        this->work(*work, token);
        if (wake_) wake_();
        return Worker::kAsleep;
    });
}

void Scans::cancel() {
    if (worker_) worker_->stop();
}
void Scans::prefer(std::size_t tensor) { preferred_ = static_cast<std::ptrdiff_t>(tensor); }

void Scans::stop() {
    worker_.reset();
    running_ = false;
}

void Scans::work(Work& work, const std::stop_token& token) {
    using Clock = std::chrono::steady_clock;
    constexpr auto kBetween = std::chrono::milliseconds(100);  // of two states that are shown
    auto shown = Clock::now();
    const auto ended = [&] { return token.stop_requested() || interrupted(); };
    const auto show = [&] {
        if (Clock::now() - shown < kBetween) return;
        publish(work, false, false);
        if (wake_) wake_();
        shown = Clock::now();
    };
    const AskBetween ask([&] {
        if (ended()) throw Cancelled();
    });
    try {
        while (work.before && !ended() && !work.before->summarised() && work.before->step()) show();
        // What a faulty tensor loses under a recipe says little: the faults come first.
        while (work.original && !ended() && !work.scan.summarised() && work.scan.step()) show();
        while (!ended() && work.verify_next()) show();
        for (bool more = true; more && !ended();) {
            if (const std::ptrdiff_t wanted = preferred_.exchange(-1); wanted >= 0)
                work.scan.prefer(static_cast<std::size_t>(wanted));
            more = work.scan.step();
            if (more) show();
        }
        while (work.before && !ended() && work.before->step()) show();
        publish(work, true, ended() && work.scan.scanned() < work.scan.rows().size());
    } catch (const Cancelled&) {  // in the midst of a long part
        publish(work, true, true);
    } catch (...) {
        const std::lock_guard lock{mutex_};
        failure_ = std::current_exception();
    }
    running_ = false;
}

void Scans::publish(const Work& work, bool done, bool cancelled) {
    ScanState state{scanned_by(work.scan, work.before.get()),
                    work.original,
                    work.verified,
                    work.against,
                    work.missing,
                    done,
                    cancelled};
    const std::lock_guard lock{mutex_};
    newest_ = std::move(state);
}

}  // namespace fp8lab::workbench
