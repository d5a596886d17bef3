// Small figures for terms of the glossary, computed with the codec and the scaling rules.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/figure/figure.h"

namespace fp8lab {

std::span<const std::string_view> illustrated_terms();   // ids
std::optional<Figure> term_figure(std::string_view id);  // empty: the term has none

}  // namespace fp8lab
