// Where the time of a training goes: named spans, nested, by arm and step. core/json/trace_events.h makes
// a file of them.
//
//   Trace trace({"bf16", "delayed"}, 20);               // a track for each arm, with its newest 20 steps
//   {
//       const Traced here(&trace.tracks()[0]);          // spans of this thread go to this track
//       trace.tracks()[0].begin_step(0);
//       const TraceSpan span("gemm", "GEMM fprop 1");
//       multiply_nt(a, b, out);
//   }
//
// A thread without a track records nothing: a span then costs one branch, and its name is not made.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

namespace fp8lab {

// A track is written by one thread at a time. Its steps follow each other, and the spans of a step are nested.
class TraceTrack {
  public:
    using Clock = std::chrono::steady_clock;
    struct Span {
        const char* category = "";
        std::string name, detail;
        Clock::time_point begin, end;
    };

    TraceTrack(std::string name, std::size_t steps) : name_(std::move(name)), steps_(steps) {}

    // A step that was begun and not ended was given up: its spans are forgotten.
    void begin_step(int step);
    void end_step();

    const std::string& name() const { return name_; }
    // The newest steps, each with the span of the step first and every other span behind the one it lies in.
    const std::deque<std::vector<Span>>& steps() const { return done_; }

  private:
    friend class TraceSpan;
    std::size_t open(const char* category, std::string name, std::string detail);
    void close(std::size_t span) { open_[span].end = Clock::now(); }

    std::string name_;
    std::size_t steps_;
    std::vector<Span> open_;  // of the step at hand; empty: none
    std::deque<std::vector<Span>> done_;
};

class Trace {
  public:
    Trace(const std::vector<std::string>& tracks, std::size_t steps) {
        for (const std::string& name : tracks) tracks_.emplace_back(name, steps);
    }
    std::vector<TraceTrack>& tracks() { return tracks_; }
    const std::vector<TraceTrack>& tracks() const { return tracks_; }

  private:
    std::vector<TraceTrack> tracks_;
};

// The track of this thread.
inline constinit thread_local TraceTrack* t_track = nullptr;

class Traced {
  public:
    explicit Traced(TraceTrack* track) : outer_(t_track) { t_track = track; }
    ~Traced() { t_track = outer_; }
    Traced(const Traced&) = delete;
    Traced& operator=(const Traced&) = delete;

  private:
    TraceTrack* outer_;
};

// From here to the end of the scope. Outside of a step nothing is recorded. `name` and `detail` are texts, or functions that
// return one and are called only where there is a track.
class TraceSpan {
  public:
    template <class Name, class Detail = const char*>
    explicit TraceSpan(const char* category, const Name& name, const Detail& detail = "") {
        if (t_track == nullptr || t_track->open_.empty()) return;
        span_ = t_track->open(category, text(name), text(detail));
        track_ = t_track;
    }
    ~TraceSpan() {
        if (track_ != nullptr) track_->close(span_);
    }
    TraceSpan(const TraceSpan&) = delete;
    TraceSpan& operator=(const TraceSpan&) = delete;

  private:
    template <class Text>
    static std::string text(const Text& of) {
        if constexpr (std::is_invocable_v<const Text&>)
            return std::string(of());
        else
            return std::string(of);
    }
    TraceTrack* track_ = nullptr;
    std::size_t span_ = 0;
};

}  // namespace fp8lab
