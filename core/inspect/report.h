// A scan as CSV and JSON: the verb `inspect` and the Workbench write the same.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/inspect/against.h"
#include "core/inspect/recommend.h"
#include "core/inspect/scan.h"

namespace fp8lab {

nlohmann::json to_json(const ScaleHealth& health);  // by name, "nan", without the number of scales

struct InspectReport {
    Scanned scanned = {};  // may be under way: cells without a number are empty, in JSON not there
    Demands demands = {};
    std::string filter = {};  // only tensors with this in their name
    std::optional<Against> against = {};

    // name,kind,class,dtype,shape,values,amax,least,binades,zeros_pct, per recipe sqnr_db_R,underflow_pct_R,
    // overflow_pct_R,worst_row_db_R,bits_R, then recommended,reason,nan,inf,sampled_every; with a second file
    // before_amax,before_least,before_binades,change ("same", "new", "reshaped"); then beyond_float32,below_float32, and
    // of codes with scales scale_nan,scale_inf,scale_zero,scale_subnormal,scale_negative; with an original
    // against_sqnr_db,against_rel_l2,against_cosine,worst_row,worst_row_db. Lines that start with # say file
    // and demands. A tensor that is not cast has the reason why in `reason`.
    std::string csv() const;
    nlohmann::json json() const;
    // "1 tensor has values that count as 0: w 1 NaN and 2 Inf"; empty: none has. Not printable().
    std::string excluded() const;
    // "1 tensor has scales that are NaN, infinite, 0, subnormal or negative: w 2 NaN"; empty: none has. Not printable().
    std::string odd_scales() const;
    std::string foot()
        const;  // "of 150 tensors lose more than 1 %: unscaled 111, ...", for a table in a terminal
};

}  // namespace fp8lab
