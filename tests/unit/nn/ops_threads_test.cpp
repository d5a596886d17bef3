// The operations of a transformer in FP32: near those in float64, and the same bytes with any number of threads
// and any vector target.
#include <doctest/doctest.h>

#include "core/formats/codec.h"
#include "core/nn/ops/columns.h"
#include "core/nn/ops/embedding.h"
#include "core/nn/ops/exponential.h"
#include "core/nn/ops/gate_rows.h"
#include "core/nn/ops/rms_norm.h"
#include "core/nn/ops/rope.h"
#include "core/nn/ops/swiglu.h"
#include "core/nn/ops/token_loss.h"
#include "core/threads/parallel.h"
#include "tests/unit/nn/ops_made.h"

using namespace fp8lab;

namespace {

struct Result {
    std::string name;
    std::vector<double> values;
};

struct Operands {
    made::Attention<double> attention;
    Matrix<double> x, dy, gate_up, da, table, logits;
    std::vector<double> g;
    TokenBatch batch;
};

// Large enough that every operation is cut into several ranges; the context takes two tiles, one of them cut.
Operands operands() {
    const AttentionShape shape{4, 100, 4, 2, 16};
    Operands o{made::attention(shape),       made::normal(400, 200, 1),   made::normal(400, 200, 2),
               made::normal(400, 300, 3, 4), made::normal(400, 150, 4),   made::normal(30, 200, 5),
               made::normal(400, 250, 6, 3), made::normal_vector(200, 7), {4, 100, {}, {}, {}}};
    Rng rng(8);
    for (std::size_t i = 0; i < 400; ++i) {
        o.batch.tokens.push_back(static_cast<int>(rng.below(30)));
        o.batch.targets.push_back(static_cast<int>(rng.below(250)));
        o.batch.scored.push_back(rng.below(3) != 0);
    }
    return o;
}

template <class T>
auto in(const Matrix<double>& m) {
    if constexpr (std::is_same_v<T, double>)
        return m;
    else
        return made::narrow(m);
}

template <class T>
std::vector<Result> all_operations(const Operands& o) {
    std::vector<Result> results;
    const auto keep = [&](const std::string& name, const std::vector<T>& values) {
        results.push_back({name, {values.begin(), values.end()}});
    };
    const auto& given = o.attention;
    made::Attention<T> a{given.shape, in<T>(given.q), in<T>(given.k), in<T>(given.v), in<T>(given.dout)};
    a.forward();
    a.backward();
    for (const auto& [name, m] :
         {std::pair("p", &a.p), {"out", &a.out}, {"dv", &a.dv}, {"ds", &a.ds}, {"dq", &a.dq}, {"dk", &a.dk}})
        keep(name, m->values);

    const std::vector<T> g(o.g.begin(), o.g.end());
    Matrix<T> normalised, y, dx;
    std::vector<T> inverse_rms, dg, scales;
    rms_norm(in<T>(o.x), g, kRmsEpsilon, normalised, inverse_rms, y);
    rms_norm_backward(in<T>(o.dy), normalised, inverse_rms, g, dx, dg);
    keep("rms_norm", y.values);
    keep("rms_norm dx", dx.values);
    keep("rms_norm dg", dg);

    Matrix<T> rotated = in<T>(o.x);
    const RotaryTable<T> rotary(100, 20);
    rotate(rotated, rotary);
    keep("rotate", rotated.values);
    rotate_back(rotated, rotary);
    keep("rotate_back", rotated.values);

    for (const GatedActivation kind : {GatedActivation::swiglu, GatedActivation::clamp}) {
        Matrix<T> activated, gradient;
        gated_activation(kind, in<T>(o.gate_up), activated);
        gated_activation_backward(kind, in<T>(o.da), in<T>(o.gate_up), gradient);
        keep("gated", activated.values);
        keep("gated backward", gradient.values);
        channel_scales(activated, scales);
        keep("scales", scales);
        scale_columns(activated, scales);
        keep("scaled", activated.values);
    }

    Matrix<T> rows, dtable, dlogits;
    gather(in<T>(o.table), o.batch.tokens, rows);
    gather_backward(in<T>(o.dy), o.batch.tokens, 30, dtable);
    keep("gather", rows.values);
    keep("gather backward", dtable.values);
    Matrix<T> part;
    take_columns(in<T>(o.x), 40, 100, part);
    keep("columns", part.values);
    put_columns(part, 30, dx);
    keep("columns put", dx.values);
    const LossValue loss = token_loss(in<T>(o.logits), o.batch, dlogits);
    keep("dlogits", dlogits.values);
    results.push_back({"loss", {loss.loss, loss.accuracy}});
    return results;
}

}  // namespace

TEST_CASE("every operation in FP32 agrees with float64 to 1e-5") {
    const Operands o = operands();
    const auto narrow = all_operations<float>(o), wide = all_operations<double>(o);
    REQUIRE(narrow.size() == wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
        CAPTURE(wide[i].name);
        CHECK(made::relative_error(narrow[i].values, wide[i].values) <= 1e-5);
    }
}

TEST_CASE("every operation gives the same bytes with 1, 2 and 3 threads") {
    const Operands o = operands();
    const int kept = threads();
    set_threads(1);
    const auto expected = all_operations<float>(o);
    for (const int count : {2, 3}) {
        CAPTURE(count);
        set_threads(count);
        const auto got = all_operations<float>(o);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            CAPTURE(expected[i].name);
            CHECK(got[i].values == expected[i].values);
        }
    }
    set_threads(kept);
}

TEST_CASE("every vector target gives the same bytes, and those of the exponential by itself") {
    const Operands o = operands();
    const auto expected = all_operations<float>(o);
    std::vector<float> numbers;
    for (float x = -90; x < 90; x += 0.37F) numbers.push_back(x);
    for (const char* const target : vector_targets()) {
        CAPTURE(target);
        force_vector_target(target);
        std::vector<float> powers = numbers;
        exponential_row(powers.data(), powers.size(), 1.5F);
        for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(powers[i] == exponential(numbers[i] - 1.5F));
        const auto got = all_operations<float>(o);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            CAPTURE(expected[i].name);
            CHECK(got[i].values == expected[i].values);
        }
    }
    force_vector_target("");
}
