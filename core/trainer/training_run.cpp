#include "core/trainer/training_run.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <new>

#include "core/threads/ask.h"
#include "core/threads/parallel.h"

namespace fp8lab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kNoTarget = std::numeric_limits<int>::max();

double ms_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

// What both threads touch. The mutex is held for moves and flags, never for a step, a snapshot or a file.
struct TrainingRun::Shared {
    mutable std::mutex mutex;
    std::condition_variable_any changed;
    Status status;
    std::deque<Command> commands;
    std::deque<std::filesystem::path> saves;
    std::atomic<bool> running = false;  // what the interface wishes; status.state says what is
    bool stepping = false;              // for single steps: `owed` of them are to begin
    int owed = 0;
    int target = kNoTarget;  // else: pause when so many steps are done
    double speed_limit = 0;
    bool snapshot_wanted = true;  // the first snapshot is sent unasked
    unsigned changes = 0;         // by the interface: what the worker waits for
    Latest<Snapshot> latest;

    void change(auto&& edit) {
        {
            std::lock_guard lock{mutex};
            edit();
            ++changes;
        }
        changed.notify_one();
    }
    void run(int until, bool single) {
        change([&] {
            owed = single ? owed + 1 : 0;
            running = true, stepping = single, target = until;
            if (status.state == RunState::idle || status.state == RunState::paused)
                status.state = RunState::running;
        });
    }
};

// The worker's side: one object on the worker's stack.
class TrainingRun::Worker {
    // Steps per second over the last second, from a sample every 50 ms.
    class Speed {
      public:
        void reset() { samples_.clear(); }
        double add(int steps, Clock::time_point now) {
            if (samples_.empty() || now - samples_.back().time >= std::chrono::milliseconds(50))
                samples_.push_back({now, steps});
            while (samples_.size() > 2 && now - samples_.front().time > std::chrono::seconds(1))
                samples_.pop_front();
            const double seconds = ms_between(samples_.front().time, now) / 1000;
            return seconds > 0 ? (steps - samples_.front().steps) / seconds : 0;
        }

      private:
        struct Sample {
            Clock::time_point time;
            int steps;
        };
        std::deque<Sample> samples_;
    };

  public:
    Worker(Shared& shared, const std::function<void()>& wake, std::stop_token stop)
        : shared_(shared), wake_(wake), stop_(std::move(stop)) {}

    void run(const Make& make) {
        if (wake_) lower_priority();
        try {
            set_state(RunState::preparing);
            trainer_ = prepared(make);
            tell({});
            set_state(RunState::idle);
            while (!stop_.stop_requested()) turn();
        } catch (const Error& failure) {
            fail(failure.kind(), failure.what());
        } catch (const std::bad_alloc&) {
            fail(ErrorKind::failed, "not enough memory");
        } catch (const std::exception& failure) {
            fail(ErrorKind::failed, failure.what());
        }
        if (wake_ && !stop_.stop_requested()) wake_();
    }

  private:
    struct Work {
        std::deque<Command> commands;
        std::deque<std::filesystem::path> saves;
        bool publish = false, step = false;
        int step_count = 1;
    };

    // The lock, with the time it took to get it counted as blocked.
    std::unique_lock<std::mutex> locked() {
        std::unique_lock lock{shared_.mutex, std::try_to_lock};
        if (!lock.owns_lock()) {
            const auto start = Clock::now();
            lock.lock();
            blocked_ms_ += ms_between(start, Clock::now());
        }
        shared_.status.blocked_ms = blocked_ms_;
        return lock;
    }

    std::unique_ptr<Trainer> prepared(const Make& make) {
        const AskBetween ask([this] {
            if (stop_.stop_requested()) throw Cancelled();
        });
        return make({[this](const std::string& what) { tell(what); }, stop_});
    }

    void tell(const std::string& what) {
        {
            const auto lock = locked();
            if (shared_.status.preparing == what) return;
            shared_.status.preparing = what;
        }
        if (wake_) wake_();
    }

    void set_state(RunState state) {
        const auto lock = locked();
        shared_.status.state = state;
    }

    void turn() {
        Work work = wait_for_work();
        for (const Command& command : work.commands) trainer_->set(command);
        for (const auto& dir : work.saves) save(dir);
        if (work.publish) publish();
        if (work.step) step(work.step_count);
    }

    bool may_run() const {
        const bool more = shared_.stepping ? shared_.owed > 0 : trainer_->steps_done() < shared_.target;
        return shared_.running && more && shared_.status.state != RunState::done;
    }

    Work wait_for_work() {
        auto lock = locked();
        for (;;) {
            if (!may_run() && shared_.status.state == RunState::running) settle(RunState::paused);
            const auto now = Clock::now();
            const bool news = shared_.snapshot_wanted && unpublished_;
            const auto publish_at = published_at_ + std::chrono::milliseconds(16);
            Work work;
            work.publish = news && now >= publish_at;
            work.step = may_run() && now >= next_step_at();
            if (work.publish || work.step || !shared_.commands.empty() || !shared_.saves.empty() ||
                stop_.stop_requested()) {
                work.step = work.step && !stop_.stop_requested();
                work.commands.swap(shared_.commands);
                work.saves.swap(shared_.saves);
                if (work.publish) shared_.snapshot_wanted = false;
                if (work.step) {
                    shared_.status.state = RunState::running;
                    work.step_count = steps_of_a_call();
                    if (shared_.stepping) --shared_.owed;
                }
                return work;
            }
            auto until = now + std::chrono::hours(1);
            if (news) until = std::min(until, publish_at);
            if (may_run()) until = std::min(until, next_step_at());
            shared_.changed.wait_until(lock, stop_, until,
                                       [&, seen = shared_.changes] { return shared_.changes != seen; });
        }
    }

    // Several steps in one call, where the trainer wants that and nothing asks for a stop on the way.
    int steps_of_a_call() const {
        if (shared_.stepping || shared_.speed_limit > 0) return 1;
        const int done = trainer_->steps_done(), end = std::min(shared_.target, trainer_->spec().steps);
        return std::clamp(trainer_->steps_per_call(), 1, std::max(1, end - done));
    }

    Clock::time_point next_step_at() const {
        if (shared_.speed_limit <= 0) return {};
        const std::chrono::duration<double> pause(1 / shared_.speed_limit);
        return last_step_at_ + std::chrono::duration_cast<Clock::duration>(pause);
    }

    void fail(ErrorKind kind, const std::string& why) {
        const auto lock = locked();
        settle(RunState::failed);
        shared_.status.message = why;
        shared_.status.kind = kind;
        shared_.status.preparing.clear();
    }

    void settle(RunState state) {
        shared_.running = false;
        shared_.owed = 0;
        shared_.status.state = state;
        shared_.status.steps_per_second = 0;
        speed_.reset();
    }

    // False: it was given up.
    bool steps(int count) {
        const AskBetween ask([this] {
            const bool waits = !shared_.running && trainer_->steps_done() < trainer_->spec().steps;
            if (waits || stop_.stop_requested()) throw Cancelled();
        });
        unpublished_ = true;
        try {
            trainer_->step(count);
            return true;
        } catch (const Cancelled&) {
            return false;
        }
    }

    void step(int count) {
        last_step_at_ = Clock::now();
        if (!steps(count)) return;
        const std::string ended = newly_stopped();
        const int done = trainer_->steps_done();
        const bool finished = done >= trainer_->spec().steps || trainer_->all_stopped();
        const auto lock = locked();
        shared_.status.steps_per_second = speed_.add(done, Clock::now());
        if (!ended.empty()) shared_.status.message = ended;
        if (finished)
            settle(RunState::done);
        else if (!ended.empty() || !may_run())
            settle(RunState::paused);
    }

    // "delayed: dy2 became non-finite at step 3" for every arm that has stopped since the last step.
    std::string newly_stopped() {
        std::string message;
        reported_.resize(trainer_->spec().arms.size());
        for (std::size_t arm = 0; arm < reported_.size(); ++arm) {
            const auto& stopped = trainer_->stopped(static_cast<int>(arm));
            if (!stopped || reported_[arm]) continue;
            reported_[arm] = true;
            message += fmt::format("{}{}: {}", message.empty() ? "" : "; ", trainer_->spec().arms[arm].name,
                                   to_string(*stopped));
        }
        return message;
    }

    void publish() {
        Snapshot snapshot = trainer_->snapshot();
        published_at_ = Clock::now();
        unpublished_ = false;
        shared_.latest.publish(std::move(snapshot));
        blocked_ms_ += ms_between(published_at_, Clock::now());
        if (wake_) wake_();
    }

    // A full disk must not end a run.
    void save(const std::filesystem::path& dir) {
        std::string message = "saved to " + dir.string();
        try {
            trainer_->save(dir);
        } catch (const std::exception& failure) {
            message = failure.what();
        }
        const auto lock = locked();
        shared_.status.message = message;
    }

    Shared& shared_;
    const std::function<void()>& wake_;
    std::stop_token stop_;
    std::unique_ptr<Trainer> trainer_;
    Speed speed_;
    std::vector<bool> reported_;  // arms whose end has been told
    bool unpublished_ = true;     // the state before the first step is worth showing, too
    double blocked_ms_ = 0;
    Clock::time_point published_at_{}, last_step_at_{};
};

TrainingRun::TrainingRun(Make make, std::function<void()> wake)
    : shared_(std::make_unique<Shared>()),
      worker_([shared = shared_.get(), make = std::move(make), wake = std::move(wake)](std::stop_token stop) {
          Worker(*shared, wake, std::move(stop)).run(make);
      }) {}

TrainingRun::~TrainingRun() = default;

void TrainingRun::start() { shared_->run(kNoTarget, false); }
void TrainingRun::single_step() { shared_->run(kNoTarget, true); }
void TrainingRun::run_to(int step) { shared_->run(step, false); }
void TrainingRun::pause() {
    shared_->change([&] { shared_->running = false, shared_->owed = 0; });
}
void TrainingRun::limit_speed(double steps_per_second) {
    shared_->change([&] { shared_->speed_limit = steps_per_second; });
}
void TrainingRun::send(Command command) {
    shared_->change([&] { shared_->commands.push_back(std::move(command)); });
}
void TrainingRun::save(std::filesystem::path dir) {
    shared_->change([&] { shared_->saves.push_back(std::move(dir)); });
}

std::optional<Snapshot> TrainingRun::take() {
    auto snapshot = shared_->latest.take();
    if (snapshot) shared_->change([&] { shared_->snapshot_wanted = true; });
    return snapshot;
}

TrainingRun::Status TrainingRun::status() const {
    std::lock_guard lock{shared_->mutex};
    Status status = shared_->status;
    status.stepping = shared_->running && shared_->stepping;
    return status;
}

}  // namespace fp8lab
