// The one Lab of every lab that computes its result from its fields: it runs the table that the model M gives. M is a
// plain struct without virtual functions; what it need not say it leaves out.
//
//   struct Ruler {
//       static constexpr LabInfo kInfo = {"ruler", 2, ...};
//       struct Params { ... };                                  // what fields change; Params{} is what reset() gives
//       std::vector<Row> rows(Params&) const;                   // the table of fields; may be static
//       static std::span<const Experiment<Ruler>> experiments();  // one, or as many as the field "experiment" has
//       static std::span<const NamedJudge> judges();            // optional
//       std::vector<Part*> parts();                             // what is computed, in this order
//       Figure thumbnail() const;
//       void settle();                          // optional: changes parameters that the others rule out
//       bool perform(std::string_view action);  // optional: false for an unknown one
//       Provenance provenance() const;          // optional
//       std::string device() const;             // optional
//       std::vector<MetricRow> common_metrics() const;  // optional: those of every experiment, before its own
//       bool stale() const;                     // optional
//       std::string table_csv() const;          // optional
//       std::vector<std::string> recipes() const;  // optional
//       void tell(const Error&);                // optional: in a window, what a part threw; the other parts go on
//
//       Params params;
//   };
//   LabEntry entry() { return entry_of<TableLab<Ruler>>(Ruler::kInfo); }
//
// Figures and metrics are functions of M. With several experiments, figures() are those of the one shown, metrics() of
// all, NaN where they are not shown.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "labs/lab.h"
#include "labs/table/computed.h"
#include "labs/table/row.h"

namespace fp8lab::table {

template <class M>
struct Experiment {
    // A value of the field "experiment". Empty: the lab has one, or its functions serve whichever is shown.
    std::string_view id = {};
    std::vector<std::string_view> figure_ids = {};  // of all that figures() can have; empty: those it has now
    std::vector<Figure> (M::*figures)() const;
    std::vector<MetricRow> (M::*metrics)() const = nullptr;
    bool (M::*ready)() const = nullptr;  // whether there is a result; null: always
};

template <class M>
class TableLab final : public Lab {
  public:
    template <class... Arguments>
    explicit TableLab(Arguments&&... of_model) : model_(std::forward<Arguments>(of_model)...) {
        settle();
        for (Part* part : parts_)
            if (part->when() == When::at_once || part->when() == When::in_frame)
                part->refresh(shows(part->of()), false);
    }
    const LabInfo& info() const override { return M::kInfo; }
    std::vector<Field> fields() override { return fields_in(rows()); }
    std::vector<Field> defaults() override { return fields_in(model_.rows(defaults_)); }
    void update() override {
        settle();
        for (Part* part : parts_) {
            if constexpr (requires(const Error& error) { model_.tell(error); }) {
                try {
                    part->refresh(shows(part->of()), in_window_);
                } catch (const Error& error) {
                    if (!in_window_) throw;
                    model_.tell(error);
                }
            } else {
                part->refresh(shows(part->of()), in_window_);
            }
        }
    }
    std::vector<Figure> figures() const override { return (model_.*experiment().figures)(); }
    std::vector<std::string> figure_ids() const override;
    Figure thumbnail() const override { return model_.thumbnail(); }
    std::vector<Metric> metrics() const override;
    std::span<const NamedJudge> judges() const override {
        if constexpr (requires { M::judges(); })
            return M::judges();
        else
            return {};
    }
    bool busy() const override {
        return std::ranges::any_of(parts_, [](const Part* part) { return part->busy(); });
    }
    void set_wake(std::function<void()> wake) override {
        in_window_ = true;
        for (Part* part : parts_) part->start_worker(wake);
    }
    bool stale() const override {
        if constexpr (requires { model_.stale(); })
            return model_.stale();
        else
            return Lab::stale();
    }
    std::string table_csv() const override {
        if constexpr (requires { model_.table_csv(); })
            return model_.table_csv();
        else
            return Lab::table_csv();
    }
    std::vector<std::string> recipes() const override {
        if constexpr (requires { model_.recipes(); })
            return model_.recipes();
        else
            return Lab::recipes();
    }
    void reset() override { model_.params = {}; }
    Provenance provenance() const override {
        if constexpr (requires { model_.provenance(); })
            return model_.provenance();
        else
            return Lab::provenance();
    }
    std::string device() const override {
        if constexpr (requires { model_.device(); })
            return model_.device();
        else
            return Lab::device();
    }

    // What views and tests read. A view changes parameters through fields(), or through functions of M for what a
    // handle does, and calls update() after these.
    M& operator*() { return model_; }
    const M& operator*() const { return model_; }
    M* operator->() { return &model_; }
    const M* operator->() const { return &model_; }

    std::vector<Row> rows() { return model_.rows(model_.params); }
    bool shows(std::string_view of) const { return has_experiment(of, shown()); }  // as in Row
    // Whether the field belongs to what is shown; why it has no effect, as a sentence, empty where it has one; whether it
    // belongs, means something and has an effect.
    bool belongs(std::string_view field) const { return shows(row(field).of); }
    std::string why_not(std::string_view field) const { return row(field).why_not; }
    bool applies(std::string_view field) const {
        const Row of = row(field);
        return of.shown && of.why_not.empty() && shows(of.of);
    }

  private:
    void perform(std::string_view action) override {
        bool known = false;
        if constexpr (requires { model_.perform(action); }) known = model_.perform(action);
        if (!known) return Lab::perform(action);
        update();
    }
    void settle() {
        if constexpr (requires { model_.settle(); }) model_.settle();
    }
    static std::vector<Field> fields_in(std::vector<Row> rows) {
        std::vector<Field> out;
        for (Row& one : rows) out.push_back(std::move(one.field));
        return out;
    }
    std::string_view shown() const {
        if constexpr (requires(const M& model) { model.params.experiment; })
            return model_.params.experiment;
        else
            return {};
    }
    const Experiment<M>& experiment() const {
        for (const Experiment<M>& one : M::experiments())
            if (shows(one.id)) return one;
        throw Error{ErrorKind::failed, std::string(M::kInfo.id), "has no experiment of that name"};
    }
    Row row(std::string_view field) const {  // its field is not to be used: it is of a copy
        typename M::Params copy = model_.params;
        for (Row& one : model_.rows(copy))
            if (one.field.info.name == field) return std::move(one);
        throw usage_error(std::string(field), "is no field of this lab");
    }

    M model_;
    const std::vector<Part*> parts_ = model_.parts();
    typename M::Params defaults_;  // never changed
    bool in_window_ = false;
};

template <class M>
std::vector<std::string> TableLab<M>::figure_ids() const {
    std::vector<std::string> out;
    for (const Experiment<M>& one : M::experiments()) {
        if (one.figure_ids.empty()) return Lab::figure_ids();
        out.insert(out.end(), one.figure_ids.begin(), one.figure_ids.end());
    }
    return out;
}

template <class M>
std::vector<Metric> TableLab<M>::metrics() const {
    std::vector<Metric> out;
    const auto add = [&](const std::vector<MetricRow>& rows, bool known) {
        for (const MetricRow& row : rows) {
            Metric metric{.name = row.name, .unit = row.unit};
            if (row.text)
                metric.text = known ? row.text() : "not computed";
            else
                metric.value = known ? row.value() : std::numeric_limits<double>::quiet_NaN();
            out.push_back(std::move(metric));
        }
    };
    if constexpr (requires { model_.common_metrics(); }) add(model_.common_metrics(), true);
    for (const Experiment<M>& one : M::experiments())
        if (one.metrics != nullptr)
            add((model_.*one.metrics)(), shows(one.id) && (one.ready == nullptr || (model_.*one.ready)()));
    return out;
}

}  // namespace fp8lab::table
