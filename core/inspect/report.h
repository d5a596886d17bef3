// A scan as CSV and JSON: the verb `inspect` and the Workbench write the same.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/inspect/recommend.h"
#include "core/inspect/scan.h"

namespace fp8lab {

struct InspectReport {
    std::string file;
    Demands demands;
    std::string filter;          // only tensors with this in their name
    std::unique_ptr<Scan> scan;  // not null; may be under way: cells without a number are empty, in JSON null
    std::unique_ptr<Scan> before = {};  // of the file that it is compared with
    std::size_t order = 0;              // the recipe that orders a table: current, else the first

    void find_order();
    // name,kind,class,dtype,shape,values,amax,least,binades,zeros_pct, per recipe sqnr_db_R,underflow_pct_R,
    // overflow_pct_R,worst_row_db_R,bits_R, then recommended,reason,nan,inf,sampled_every; with a second file
    // before_amax,before_least,before_binades,change ("same", "new", "reshaped"). Lines that start with # say file and
    // demands.
    std::string csv() const;
    nlohmann::json json() const;
    std::string foot() const;  // "losing more than 1 %: unscaled 303, ...", for a table in a terminal
};

}  // namespace fp8lab
