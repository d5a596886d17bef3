// GPTQ, AWQ and rotations against computations in float64 that follow other formulas, and what must stay as it is.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/formats/codec.h"
#include "core/inference/data.h"
#include "core/inference/methods/awq.h"
#include "core/inference/methods/column_cast.h"
#include "core/inference/methods/gptq.h"
#include "core/inference/methods/lowered_mlp.h"
#include "core/inference/methods/rotation.h"
#include "made.h"

using namespace fp8lab;
using test::made_network;
using test::normal;

namespace {

using Table = std::vector<std::vector<double>>;

const LowFormat& format(std::string_view id) { return find_low_format(id, "test"); }

TrainedMlp digits(int seed = 1) {
    return read_mlp(std::string(FP8LAB_SOURCE "/assets/models/digits-s") + std::to_string(seed) +
                    ".safetensors");
}

// The scale of a weight, written out: E4M3 with a scale for all of w or for each row, INT4 in groups of 32 of `from`.
float scale_of(const std::string& id, const Table& from, const Matrix<float>& w, std::size_t r,
               std::size_t c) {
    if (id != "int4-g32") return 448 / (id == "e4m3" ? amax(w.values) : amax(w.row(r)));
    float largest = 0;
    for (std::size_t k = c / 32 * 32; k < std::min(c / 32 * 32 + 32, w.cols); ++k)
        largest = std::max(largest, std::fabs(static_cast<float>(from[r][k])));
    return 7.5F / largest;
}

double cast_one(const std::string& id, double value, float scale) {
    const float scaled = static_cast<float>(value) * scale;
    const FormatInfo& e4m3 = find_format("e4m3");
    const float code = id == "int4-g32" ? std::clamp(std::nearbyint(scaled), -8.0F, 7.0F)
                                        : decode(e4m3, encode(e4m3, scaled));
    return static_cast<double>(code * (1 / scale));
}

// The inverse by Gauss and Jordan.
Table inverse_of(Table h) {
    const std::size_t n = h.size();
    Table out(n, std::vector<double>(n));
    for (std::size_t i = 0; i < n; ++i) out[i][i] = 1;
    for (std::size_t i = 0; i < n; ++i) {
        const double pivot = h[i][i];
        for (std::size_t k = 0; k < n; ++k) h[i][k] /= pivot, out[i][k] /= pivot;
        for (std::size_t r = 0; r < n; ++r) {
            if (r == i) continue;
            const double factor = h[r][i];
            for (std::size_t k = 0; k < n; ++k) h[r][k] -= factor * h[i][k], out[r][k] -= factor * out[i][k];
        }
    }
    return out;
}

Table gram(const Matrix<float>& x) {
    Table h(x.cols, std::vector<double>(x.cols));
    for (std::size_t i = 0; i < x.cols; ++i)
        for (std::size_t k = 0; k < x.cols; ++k)
            for (std::size_t r = 0; r < x.rows; ++r)
                h[i][k] += static_cast<double>(x.row(r)[i]) * static_cast<double>(x.row(r)[k]);
    for (std::size_t i = 0; i < x.cols; ++i)
        if (h[i][i] == 0) h[i][i] = 1;
    return h;
}

// The columns from left to right, or the one with the largest H_jj of those that are left, the leftmost of equal ones.
std::vector<std::size_t> order_of(const Table& h, ColumnOrder order) {
    std::vector<std::size_t> out;
    std::vector<bool> taken(h.size());
    for (std::size_t i = 0; i < h.size(); ++i) {
        std::size_t best = h.size();
        for (std::size_t c = 0; c < h.size(); ++c)
            if (!taken[c] && (best == h.size() || (order == ColumnOrder::act && h[c][c] > h[best][best])))
                best = c;
        taken[best] = true, out.push_back(best);
    }
    return out;
}

// Optimal Brain Quantization's form of it: the inverse of H over the columns that are left is updated column by column.
Table brain_surgeon(const std::string& id, const Matrix<float>& w, const Matrix<float>& x, double damp,
                    ColumnOrder order = ColumnOrder::given) {
    Table h = gram(x);
    const std::vector<std::size_t> columns = order_of(h, order);
    double mean = 0;
    for (std::size_t i = 0; i < w.cols; ++i) mean += h[i][i] / static_cast<double>(w.cols);
    for (std::size_t i = 0; i < w.cols; ++i) h[i][i] += damp * mean;
    Table inverse = inverse_of(h), now(w.rows, std::vector<double>(w.cols)), out = now;
    for (std::size_t r = 0; r < w.rows; ++r)
        for (std::size_t c = 0; c < w.cols; ++c) now[r][c] = static_cast<double>(w.row(r)[c]);
    const Table original = now;
    std::vector<float> scales(w.rows);
    for (const std::size_t c : columns) {
        for (std::size_t r = 0; r < w.rows; ++r) {
            if (order == ColumnOrder::act)
                scales[r] = scale_of(id, original, w, r, c);
            else if (c % 32 == 0)
                scales[r] = scale_of(id, now, w, r, c);
            out[r][c] = cast_one(id, now[r][c], scales[r]);
            const double error = (now[r][c] - out[r][c]) / inverse[c][c];
            for (std::size_t k = 0; k < w.cols; ++k) now[r][k] -= error * inverse[c][k];
        }
        const std::vector<double> row = inverse[c];
        for (std::size_t i = 0; i < w.cols; ++i)
            for (std::size_t k = 0; k < w.cols; ++k) inverse[i][k] -= row[i] * row[k] / row[c];
    }
    return out;
}

double sum_of_squares(const Matrix<float>& x, const Table& d) {
    double sum = 0;
    for (std::size_t r = 0; r < x.rows; ++r)
        for (const std::vector<double>& row : d) {
            double dot = 0;
            for (std::size_t k = 0; k < x.cols; ++k) dot += static_cast<double>(x.row(r)[k]) * row[k];
            sum += dot * dot;
        }
    return sum;
}

}  // namespace

TEST_CASE("casting column by column, nothing changed between, is the cast of the whole") {
    for (const LowFormat* f : low_formats(RecipeList::weights))
        for (const auto& [rows, cols] : {std::pair{20, 70}, {130, 200}, {3, 16}}) {
            CAPTURE(f->id);
            CAPTURE(cols);
            const Matrix<float> w = normal(static_cast<std::size_t>(rows), static_cast<std::size_t>(cols), 2);
            ColumnCast columns(*f, w);
            Matrix<float> out(w.rows, w.cols);
            std::vector<float> column(w.rows);
            for (std::size_t c = 0; c < w.cols; ++c) {
                if (c % columns.width() == 0) {
                    Matrix<float> next(w.rows, std::min(columns.width(), w.cols - c));
                    for (std::size_t r = 0; r < w.rows; ++r)
                        for (std::size_t k = 0; k < next.cols; ++k) next.row(r)[k] = w.row(r)[c + k];
                    columns.start(next);
                }
                for (std::size_t r = 0; r < w.rows; ++r) column[r] = w.row(r)[c];
                columns.cast(column);
                for (std::size_t r = 0; r < w.rows; ++r) out.row(r)[c] = column[r];
            }
            CHECK(out.values == lowered_weights(w, *f).values);
        }
}

TEST_CASE("GPTQ is Optimal Brain Quantization in both orders, on three layers of a trained network") {
    const TrainedMlp network = digits();
    const std::vector<Matrix<float>> inputs = layer_inputs(network, data_of_task(network).train_x);
    for (const std::size_t l : {std::size_t{0}, std::size_t{2}, std::size_t{3}})
        for (const std::string id : {"int4-g32", "e4m3", "e4m3-row"})
            for (const ColumnOrder order : {ColumnOrder::given, ColumnOrder::act}) {
                CAPTURE(l);
                CAPTURE(id);
                CAPTURE(order == ColumnOrder::act);
                const Matrix<float>& w = network.layers[l].w;
                const Matrix<float> ours = gptq(format(id), w, inputs[l], 0.01, "test", order);
                const Table expected = brain_surgeon(id, w, inputs[l], 0.01, order);
                double worst = 0;
                for (std::size_t r = 0; r < w.rows; ++r)
                    for (std::size_t c = 0; c < w.cols; ++c)
                        worst =
                            std::max(worst, std::fabs(static_cast<double>(ours.row(r)[c]) - expected[r][c]));
                CHECK(worst <= 1e-6);
                CHECK(ours.values != lowered_weights(w, format(id)).values);
                if (order == ColumnOrder::act)
                    CHECK(ours.values != gptq(format(id), w, inputs[l], 0.01, "test").values);
            }
}

TEST_CASE("the order of GPTQ's columns: none for inputs without correlation, the left one of equal ones") {
    constexpr std::size_t cols = 70;
    const auto lowered = [](const LowFormat& f, const Matrix<float>& w, const Matrix<float>& x,
                            ColumnOrder order) { return gptq(f, w, x, 0.01, "test", order).values; };
    const Matrix<float> w = normal(20, cols, 1), correlated = normal(90, cols, 2);
    Matrix<float> apart(3 * cols, cols), turned(cols, cols);
    for (std::size_t r = 0; r < apart.rows; ++r)
        apart.row(r)[r % cols] = 1 + static_cast<float>(r % 13);  // one input per row: H is diagonal
    for (std::size_t r = 0; r < cols; ++r)  // each column has the same values: all H_jj are equal
        for (std::size_t c = 0; c < cols; ++c) turned.row(r)[c] = static_cast<float>((r + c) % cols * 7 % 11);
    for (const LowFormat* f : low_formats(RecipeList::weights)) {
        if (f->id == "fp32") continue;
        CAPTURE(f->id);
        CHECK(lowered(*f, w, apart, ColumnOrder::act) == lowered(*f, w, apart, ColumnOrder::given));
        CHECK(lowered(*f, w, apart, ColumnOrder::act) == lowered_weights(w, *f).values);
        CHECK(lowered(*f, w, correlated, ColumnOrder::act) != lowered(*f, w, correlated, ColumnOrder::given));
    }
    for (const char* id : {"e4m3", "e4m3-row", "int8"})  // their scales are the same in both orders
        CHECK(lowered(format(id), w, turned, ColumnOrder::act) ==
              lowered(format(id), w, turned, ColumnOrder::given));
    CHECK(find_column_order("act", "test") == ColumnOrder::act);
    CHECK_THROWS_AS((void)find_column_order("desc", "test"), Error);
}

TEST_CASE("with much damping, and for inputs that are always 0, GPTQ casts to nearest") {
    const Matrix<float> w = normal(12, 40, 1);
    Matrix<float> x = normal(90, 40, 2);
    for (const char* id : {"nvfp4", "int4-g32", "e4m3", "mxfp4"})
        CHECK(gptq(format(id), w, x, 1e9, "test").values == lowered_weights(w, format(id)).values);
    for (std::size_t r = 0; r < x.rows; ++r)
        for (std::size_t c = 0; c < 40; ++c)
            if (c % 2 == 1) x.row(r)[c] = 0;
    const Matrix<float> lowered = gptq(format("e4m3"), w, x, 0.01, "test"),
                        nearest = lowered_weights(w, format("e4m3"));
    for (std::size_t r = 0; r < w.rows; ++r)
        for (std::size_t c = 1; c < 40; c += 2) CHECK(lowered.row(r)[c] == nearest.row(r)[c]);
}

TEST_CASE("GPTQ refuses what it cannot invert, and names the layer") {
    const Matrix<float> w = normal(4, 24, 1);
    const auto says = [&](const Matrix<float>& x, double damp, const char* part) {
        try {
            (void)gptq(format("nvfp4"), w, x, damp, "3");
            FAIL("did not throw");
        } catch (const Error& e) {
            CHECK(std::string(e.what()).find("layer 3") != std::string::npos);
            CHECK(std::string(e.what()).find(part) != std::string::npos);
        }
    };
    says(normal(2, 24, 5), 1e-300, "not positive definite");  // rank 2 of 24
    Matrix<float> bad = normal(30, 24, 5);
    bad.values[7] = std::numeric_limits<float>::quiet_NaN();
    says(bad, 0.01, "not finite");
    says(normal(30, 23, 5), 0.01, "24 columns");
    says(Matrix<float>(0, 24), 0.01, "24 columns");
}

TEST_CASE(
    "AWQ takes the exponent with the least error of the outputs, on three layers of a trained network") {
    const TrainedMlp network = digits();
    const std::vector<Matrix<float>> inputs = layer_inputs(network, data_of_task(network).train_x);
    for (const std::size_t l : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
        for (const char* id : {"nvfp4", "int4-g128"}) {
            CAPTURE(l);
            CAPTURE(id);
            const Matrix<float>&w = network.layers[l].w, &x = inputs[l];
            std::vector<double> means(w.cols);
            for (std::size_t r = 0; r < x.rows; ++r)
                for (std::size_t c = 0; c < w.cols; ++c)
                    means[c] += std::fabs(static_cast<double>(x.row(r)[c])) / static_cast<double>(x.rows);
            double least = std::numeric_limits<double>::infinity();
            std::vector<double> best;
            for (int i = 0; i < 20; ++i) {
                std::vector<double> s;
                for (const double m : means) s.push_back(std::max(std::pow(m + 1e-8, 0.05 * i), 1e-4));
                const double root = std::sqrt(*std::ranges::max_element(s) * *std::ranges::min_element(s));
                Matrix<float> scaled = w;
                for (double& v : s) v /= root;
                for (std::size_t r = 0; r < w.rows; ++r)
                    for (std::size_t c = 0; c < w.cols; ++c) scaled.row(r)[c] *= static_cast<float>(s[c]);
                const Matrix<float> q = lowered_weights(scaled, format(id));
                Table d(w.rows, std::vector<double>(w.cols));
                for (std::size_t r = 0; r < w.rows; ++r)
                    for (std::size_t c = 0; c < w.cols; ++c)
                        d[r][c] = static_cast<double>(q.row(r)[c]) / s[c] - static_cast<double>(w.row(r)[c]);
                const double error = sum_of_squares(x, d);
                if (error < least) least = error, best = s;
            }
            const std::vector<float> ours = awq_divisors(format(id), w, x, false);
            for (std::size_t c = 0; c < w.cols; ++c)
                CHECK(static_cast<double>(ours[c]) == doctest::Approx(best[c]).epsilon(1e-6));
        }
}

TEST_CASE("AWQ's floor leaves channels that are almost 0 alone") {
    const Matrix<float> w = normal(16, 32, 1);
    Matrix<float> x = normal(200, 32, 2);
    for (std::size_t r = 0; r < x.rows; ++r) x.row(r)[5] = 0, x.row(r)[9] *= 30;
    const std::vector<float> with = awq_divisors(format("int4-g32"), w, x, true),
                             without = awq_divisors(format("int4-g32"), w, x, false);
    CHECK(with[5] == 1);
    CHECK(without[5] < 0.5F);
    for (std::size_t c = 0; c < 32; ++c)
        if (c != 5) CHECK(with[c] == without[c]);
}

TEST_CASE("rotations are orthogonal, and their signs follow from the seed") {
    for (const std::size_t n : {1, 2, 16, 48, 64, 96, 7}) {
        CAPTURE(n);
        const Matrix<float> r = random_hadamard(n, 3);
        Matrix<float> product;
        multiply_nt(r, r, product);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < n; ++k)
                CHECK(product.row(i)[k] == doctest::Approx(i == k ? 1 : 0).epsilon(1e-6));
    }
    CHECK(random_hadamard(64, 3).values == random_hadamard(64, 3).values);
    CHECK(random_hadamard(64, 3).values != random_hadamard(64, 4).values);
    std::set<float> sizes;
    for (const float v : hadamard_blocks(64).values) sizes.insert(std::fabs(v));
    CHECK(sizes == std::set<float>{0.125F});
}

TEST_CASE("to nearest is run_lowered, and in FP32 every method leaves the outputs as they are") {
    const TrainedMlp n = made_network({32, 48, 40, 6});
    const Matrix<float> train = normal(80, 32, 7), x = normal(30, 32, 8);
    for (const char* id : {"e4m3", "nvfp4", "int8-row", "e4m3-128"})
        for (const bool both : {false, true}) {
            const Mix mix = uniform_mix(3, format(id), both);
            const LoweredMlp lowered = lower_mlp(n, {}, mix, {});
            CHECK(run_lowered(n, lowered, x).values == run_lowered(n, x, mix).y.values);
        }
    const Matrix<float> y = forward(n, x);
    for (const MethodInfo& method : methods()) {
        CAPTURE(method.name);
        if (method.id == Method::four_or_six) continue;
        const LoweredMlp lowered = lower_mlp(n, train, uniform_mix(3, format("fp32")), {.method = method.id});
        const Matrix<float> out = run_lowered(n, lowered, x);
        for (std::size_t i = 0; i < y.values.size(); ++i)
            CHECK(out.values[i] == doctest::Approx(y.values[i]).epsilon(1e-4));
    }
}

TEST_CASE("GPTQ raises the error of the weights and lowers that of the outputs, in every layer") {
    for (const int seed : {1, 2, 3})
        for (const char* id : {"nvfp4", "mxfp4", "int4-g32", "nf4", "e4m3"}) {
            CAPTURE(seed);
            CAPTURE(id);
            const TrainedMlp network = digits(seed);
            const Matrix<float> train = data_of_task(network).train_x;
            const Mix mix = uniform_mix(4, format(id), false);
            const auto rows = [&](Method method) {
                return lower_mlp(network, train, mix, {.method = method}).layers;
            };
            const auto nearest = rows(Method::nearest), gptq = rows(Method::gptq);
            for (std::size_t l = 0; l < 4; ++l) {
                CHECK(gptq[l].rel_l2_w() > nearest[l].rel_l2_w());
                CHECK(gptq[l].rel_out < nearest[l].rel_out);
            }
        }
}

TEST_CASE("the amax factor moves scales per tensor alone, and rows limit what a method sees") {
    const TrainedMlp n = made_network({32, 48, 6});
    const Matrix<float> train = normal(64, 32, 7), x = normal(30, 32, 8);
    for (const LowFormat* f : low_formats(RecipeList::activations)) {
        CAPTURE(f->id);
        const Mix mix = uniform_mix(2, *f);
        const LoweredMlp as_is = lower_mlp(n, train, mix, {}),
                         wide = lower_mlp(n, train, mix, {.amax_factor = 3});
        const bool moved = run_lowered(n, as_is, x).values != run_lowered(n, wide, x).values;
        CHECK(moved == f->has_static_scale);
    }
    const Mix mix = uniform_mix(2, format("nvfp4"), false);
    Matrix<float> part(16, 32);
    std::copy_n(train.values.begin(), part.values.size(), part.values.begin());
    const auto weights = [&](const Matrix<float>& rows, std::size_t seen) {
        return lower_mlp(n, rows, mix, {.method = Method::gptq, .rows = seen}).layers[1].w.values;
    };
    CHECK(weights(train, 16) == weights(part, 0));
    CHECK(weights(train, 16) != weights(train, 0));
    CHECK(weights(train, 1000) == weights(train, 0));
}

TEST_CASE("methods refuse what they have no meaning for") {
    const TrainedMlp n = made_network({16, 16, 4}), tanh = made_network({16, 16, 4}, Activation::tanh);
    const Matrix<float> train = normal(40, 16, 7);
    const Mix e4m3 = uniform_mix(2, format("e4m3"));
    const auto refuses = [&](const TrainedMlp& network, const Matrix<float>& rows, const MethodOptions& how) {
        CHECK_THROWS_AS((void)lower_mlp(network, rows, e4m3, how), Error);
    };
    refuses(n, {}, {.method = Method::gptq});
    refuses(tanh, train, {.method = Method::awq});
    refuses(tanh, train, {.method = Method::smooth});
    refuses(n, train, {.method = Method::gptq, .damp = 0});
    refuses(n, train, {.amax_factor = 0});
    CHECK_THROWS_AS((void)lower_mlp(n, train, uniform_mix(3, format("e4m3")), {}), Error);
    const Mix weights = uniform_mix(2, format("e4m3"), false), nvfp4 = uniform_mix(2, format("nvfp4"), false),
              mixed{{&format("nvfp4"), &format("e4m3")}, weights.activations};
    CHECK_THROWS_AS(check_effect({.method = Method::four_or_six}, weights), Error);
    CHECK_THROWS_AS(check_effect({.method = Method::awq, .damp = 0.1}, nvfp4), Error);
    CHECK_THROWS_AS(check_effect({.method = Method::gptq, .awq_floor = false}, nvfp4), Error);
    CHECK_THROWS_AS(check_effect({.rows = 16}, nvfp4), Error);
    CHECK_THROWS_AS(check_effect({.method = Method::gptq, .amax_factor = 2}, nvfp4), Error);
    CHECK_NOTHROW(check_effect({.method = Method::four_or_six}, mixed));
    CHECK_NOTHROW(check_effect({.method = Method::gptq, .damp = 0.1, .rows = 16, .amax_factor = 2}, e4m3));
    const TrainedMlp wide = made_network({kMostChannels + 1, 4});
    CHECK_THROWS_AS((void)lower_mlp(wide, normal(4, kMostChannels + 1, 2), uniform_mix(1, format("nvfp4")),
                                    {.method = Method::gptq}),
                    Error);
    CHECK_THROWS_AS((void)find_method("qptq", "--method"), Error);
}
