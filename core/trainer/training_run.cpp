#include "core/trainer/training_run.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <new>

#include "core/threads/ask.h"

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
    Status status;
    std::deque<Command> commands;
    std::deque<std::filesystem::path> saves;
    std::atomic<bool> running = false;  // what the interface wishes; status.state says what is
    bool stepping = false;              // for single steps: `owed` of them are to begin
    int owed = 0;
    int target = kNoTarget;  // else: pause when so many steps are done
    double speed_limit = 0;
    bool snapshot_wanted = true;  // the first snapshot is sent unasked
    Latest<Snapshot> latest;
};

// The worker's side.
class TrainingRun::Turns {
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
    Turns(Shared& shared, Make make, std::function<void()> wake)
        : shared_(shared), make_(std::move(make)), wake_(std::move(wake)) {}

    // The first one makes the trainer.
    Clock::time_point next(const std::stop_token& stop) {
        if (ended_) return Worker::kAsleep;
        stop_ = stop;
        try {
            if (trainer_) return turn();
            set_state(RunState::preparing);
            trainer_ = prepared();
            tell({});
            set_state(RunState::idle);
            return Worker::kAtOnce;
        } catch (const Error& failure) {
            fail(failure.kind(), failure.what());
        } catch (const std::bad_alloc&) {
            fail(ErrorKind::failed, "not enough memory");
        } catch (const std::exception& failure) {
            fail(ErrorKind::failed, failure.what());
        }
        ended_ = true;
        if (wake_ && !stop_.stop_requested()) wake_();
        return Worker::kAsleep;
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

    std::unique_ptr<Trainer> prepared() {
        const AskBetween ask([this] {
            if (stop_.stop_requested()) throw Cancelled();
        });
        return make_({[this](const std::string& what) { tell(what); }, stop_});
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

    Clock::time_point turn() {
        Work work;
        if (const auto due = look_for(work)) return *due;
        for (const Command& command : work.commands) trainer_->set(command);
        for (const auto& dir : work.saves) save(dir);
        if (work.publish) publish();
        if (work.step) step(work.step_count);
        return Worker::kAtOnce;
    }

    bool may_run() const {
        const bool more = shared_.stepping ? shared_.owed > 0 : trainer_->steps_done() < shared_.target;
        return shared_.running && more && shared_.status.state != RunState::done;
    }

    // When there will be some work, if there is none.
    std::optional<Clock::time_point> look_for(Work& work) {
        const auto lock = locked();
        if (!may_run() && shared_.status.state == RunState::running) settle(RunState::paused);
        const auto now = Clock::now();
        const bool news = shared_.snapshot_wanted && unpublished_;
        const auto publish_at = published_at_ + std::chrono::milliseconds(16);
        work.publish = news && now >= publish_at;
        work.step = may_run() && now >= next_step_at() && !stop_.stop_requested();
        if (!work.publish && !work.step && shared_.commands.empty() && shared_.saves.empty())
            return std::min(news ? publish_at : Worker::kAsleep,
                            may_run() ? next_step_at() : Worker::kAsleep);
        work.commands.swap(shared_.commands);
        work.saves.swap(shared_.saves);
        if (work.publish) shared_.snapshot_wanted = false;
        if (work.step) {
            shared_.status.state = RunState::running;
            work.step_count = steps_of_a_call();
            if (shared_.stepping) --shared_.owed;
        }
        return std::nullopt;
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
    Make make_;
    std::function<void()> wake_;
    std::stop_token stop_;  // of the turn
    bool ended_ = false;
    std::unique_ptr<Trainer> trainer_;
    Speed speed_;
    std::vector<bool> reported_;  // arms whose end has been told
    bool unpublished_ = true;     // the state before the first step is worth showing, too
    double blocked_ms_ = 0;
    Clock::time_point published_at_{}, last_step_at_{};
};

TrainingRun::TrainingRun(Make make, std::function<void()> wake)
    : shared_(std::make_unique<Shared>()),
      worker_([turns = std::make_shared<Turns>(*shared_, std::move(make), wake)](
                  const std::stop_token& stop) { return turns->next(stop); },
              wake ? Worker::Priority::below_frames : Worker::Priority::normal) {}

TrainingRun::~TrainingRun() = default;

void TrainingRun::change(const std::function<void()>& edit) {
    {
        std::lock_guard lock{shared_->mutex};
        edit();
    }
    worker_.notify();
}

void TrainingRun::run(int until, bool single) {
    change([&] {
        shared_->owed = single ? shared_->owed + 1 : 0;
        shared_->running = true, shared_->stepping = single, shared_->target = until;
        RunState& state = shared_->status.state;
        if (state == RunState::idle || state == RunState::paused) state = RunState::running;
    });
}

void TrainingRun::start() { run(kNoTarget, false); }
void TrainingRun::single_step() { run(kNoTarget, true); }
void TrainingRun::run_to(int step) { run(step, false); }
void TrainingRun::pause() {
    change([&] { shared_->running = false, shared_->owed = 0; });
}
void TrainingRun::limit_speed(double steps_per_second) {
    change([&] { shared_->speed_limit = steps_per_second; });
}
void TrainingRun::send(Command command) {
    change([&] { shared_->commands.push_back(std::move(command)); });
}
void TrainingRun::save(std::filesystem::path dir) {
    change([&] { shared_->saves.push_back(std::move(dir)); });
}

std::optional<Snapshot> TrainingRun::take() {
    auto snapshot = shared_->latest.take();
    if (snapshot) change([&] { shared_->snapshot_wanted = true; });
    return snapshot;
}

TrainingRun::Status TrainingRun::status() const {
    std::lock_guard lock{shared_->mutex};
    Status status = shared_->status;
    status.stepping = shared_->running && shared_->stepping;
    return status;
}

}  // namespace fp8lab
