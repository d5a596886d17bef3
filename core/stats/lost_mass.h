// Lost mass: what underflow removes from a tensor, weighed instead of counted (numerics.md 5.1).
#pragma once

namespace fp8lab {

// Sums over the finite elements of a tensor. The labs, the quantiser and the kernels of the GPU all fill this
// one; the percentages are CastStats::lost_l1_pct() and CastStats::lost_energy_pct().
struct LostMass {
    double l1 = 0;                        // sum of |x|
    double lost_l1 = 0, lost_energy = 0;  // sums of |x| and x^2 over the x that became 0

    // `x` is finite. A square of a float is exact in float64.
    constexpr void add(double x, bool became_zero) {
        const double size = x < 0 ? -x : x;
        l1 += size;
        if (!became_zero) return;
        lost_l1 += size;
        lost_energy += x * x;
    }
    constexpr LostMass& operator+=(const LostMass& other) {
        l1 += other.l1;
        lost_l1 += other.lost_l1;
        lost_energy += other.lost_energy;
        return *this;
    }
};

}  // namespace fp8lab
