// The log of a run as its lines come in: a part of read_run.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/run/log_lines.h"
#include "core/run/run_log.h"

namespace fp8lab {

class LogBuilder {
  public:
    RunLog log;

    void add(const LogPiece& piece, std::uint16_t source);  // `source`: TensorPoint::source of the file
    void note_arm(const std::string& arm);
    void settle();  // sorts what was added: `log` can be read after it

  private:
    void add_loss(const LogRow& row);
    TensorSeries& find(std::string_view name);

    std::unordered_map<std::string, std::size_t> places_;
    std::size_t last_ = 0;  // tensor that was found last
    bool losses_settled_ = true;
};

}  // namespace fp8lab
