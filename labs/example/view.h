// The view of the smallest lab: its figure, and the Explore tab that labs/table makes of its rows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "labs/example/model.h"
#include "labs/table/view.h"

namespace fp8lab::example {

class ExampleView final : public table::TableView<Example> {
  public:
    using TableView::TableView;
    void stage(ui::Context& context, Rect area) override {
        ui::plot(context, "example.gaps", lab_.figures().front(), plot_, area);
    }
    std::vector<std::pair<std::string, std::string>> status() const override {
        return {{"format", lab_->params.format}};
    }

  private:
    std::string more_words() const override { return ""; }

    ui::PlotState plot_;
};

}  // namespace fp8lab::example
