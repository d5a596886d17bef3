// std::visit with one lambda per alternative: std::visit(Overloaded{[](A) {}, [](B) {}}, variant).
#pragma once

namespace fp8lab {

template <class... Handlers>
struct Overloaded : Handlers... {
    using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;  // clang 16 does not deduce it by itself

}  // namespace fp8lab
