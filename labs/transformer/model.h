// L13, a transformer block by block: two arms of one training. The switches are options of arm B's recipe.
//
// A channel of SwiGLU is aligned by the action "align", once, or after
// `align_step` steps; so a run follows from its fields alone.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "labs/live/session.h"
#include "labs/transformer/model_health.h"
#include "labs/transformer/model_operations.h"
#include "labs/transformer/model_params.h"

namespace fp8lab::transformer {

// What an arm writes behind the prompt: its newest text.
struct Words {
    std::string prompt, continuation;
    std::vector<bool> wrong = {};  // of copying, per character
    int step = 0;                  // steps done when it was written; 0: none is there yet
};

class TransformerLab final : public live::SessionOf<Params> {
  public:
    explicit TransformerLab(Backends backends = {});

    // "block", "loss", "gap" and "histogram"; "step" where a GPU's times are known.
    std::vector<Figure> figures() const override;
    Figure thumbnail() const override;  // this run's curves, or the operations of a block
    std::vector<Metric> metrics() const override;
    std::vector<std::string> metric_names() const override;
    std::span<const NamedJudge> judges() const override;
    // The series of a run at rest that follows from its settings, also of one that is not at its end.
    std::string record() const override;
    void restart() override;
    void align();                       // behind the action "align"
    std::string why_not_align() const;  // empty: it can be done

    std::optional<int> aligned_at() const;
    const std::array<Health, 2>& health() const { return health_; }
    const std::optional<Evaluation>& evaluation(std::size_t arm) const { return evaluations_.at(arm); }
    Words words(std::size_t arm) const;
    const ModelPlan& plan() const;
    std::string cost_sentence() const;  // of both arms' steps on the GPU; empty: there are no times
    std::shared_ptr<const Shipped> recorded() const override;
    std::vector<Figure> recorded_curves() const override;

    int block() const;  // of the selected tensor; of the head the last
    TensorId selected() const { return *plan().find(params_.tensor); }
    std::vector<Operation> operations() const;  // of arm B, in block()
    double gap_pct() const { return live::gap_pct(history_, 1); }
    double first_loss(std::size_t arm) const;
    double ln_vocabulary() const;
    // Copying: steps until 20 steps have a mean accuracy of 99 %; -1: not yet.
    int learnt_at(std::size_t arm) const;

    std::string block_title() const;
    std::string finding() const override;
    std::string command() const override;
    std::string transformer_engine() const override;

  private:
    void perform(std::string_view action) override;
    TensorId watched() const override { return selected(); }
    Snapshot read_record(std::string_view record, const TrainSpec& spec) override;
    void taken(const Snapshot& snapshot) override;
    int rest_before(int goal) override;
    bool waits(std::string_view field, std::string_view told) const override;
    bool explained() const override;
    void locate_alignment();
    Figure block_figure() const;
    // The figures of this run, or of a recorded one.
    Figure loss_figure(const live::History&, const std::vector<live::ArmLook>&) const;
    Figure gap_figure(const live::History&, const std::vector<live::ArmLook>&) const;
    Figure histogram() const;

    mutable std::optional<std::pair<TaskKind, ModelPlan>> plan_;  // of a task, made once
    std::array<Health, 2> health_;
    std::array<std::optional<Evaluation>, 2> evaluations_;
    enum class Alignment {
        none,
        sent,
        done
    } alignment_ = Alignment::none;  // sent: its step is not known yet
    bool by_hand_ = false;           // align_step was set by the button
};

// model_record.cpp. A run as evidence keeps it: the losses of every step and how the tensors are at its end.
struct Recorded {
    Snapshot snapshot;
    std::array<Health, 2> health;
    int aligned_at = 0;  // 0: not
};
std::string record_text(const TransformerLab& lab);
Recorded parse_record(std::string_view text, const TrainSpec& spec,
                      const ModelPlan& plan);  // throws input_error

}  // namespace fp8lab::transformer
