// The materialised attention against core's operations in float64.
#include <doctest/doctest.h>

#include "core/nn/ops/attention.h"
#include "tests/kernels/transformer_memory.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

namespace {

struct Problem {
    AttentionSizes z;
    int p_stride = 0;
};
const std::vector<Problem> kProblems = {
    {{3, 1, 1, 1, 16}, 16},    {{2, 7, 4, 1, 16}, 7},   {{3, 64, 4, 4, 16}, 64},    {{2, 65, 4, 2, 32}, 80},
    {{1, 130, 2, 1, 64}, 144}, {{2, 40, 3, 3, 6}, 42},  {{1, 257, 2, 2, 128}, 272}, {{2, 33, 8, 2, 8}, 48},
    {{1, 96, 1, 1, 80}, 96},   {{2, 130, 6, 3, 2}, 131}};

std::size_t up(std::size_t n) { return (n + 15) / 16 * 16; }

// Columns of heads inside wider rows, as q, k and v lie in the output of their GEMM; NaN around them.
class Heads {
  public:
    Heads(const Values& values, int tokens, int cols, Element element)
        : cols_(cols), all_(wide(values, tokens, cols), shape(tokens, cols), element) {
        view_.data = static_cast<std::byte*>(all_.get()) + kBefore * bytes_of(element);
        view_.stride = shape(tokens, cols).cols;
    }
    // An output: poisoned.
    Heads(int tokens, int cols, Element element)
        : Heads(Values(size_of(tokens, cols), kPoison), tokens, cols, element) {}
    const HeadMatrix& view() const { return view_; }
    Values values() const {
        const Values all = all_.real();
        Values out;
        for (std::size_t r = 0; r * static_cast<std::size_t>(view_.stride) < all.size(); ++r) {
            const auto row =
                all.begin() + static_cast<std::ptrdiff_t>(r * static_cast<std::size_t>(view_.stride));
            out.insert(out.end(), row + kBefore, row + kBefore + cols_);
            for (int c = 0; c < view_.stride; ++c)  // what is beside them is not touched
                if (c < kBefore || c >= kBefore + cols_) REQUIRE(std::isnan(row[c]));
        }
        return out;
    }

  private:
    static constexpr int kBefore = 16;
    static Shape shape(int tokens, int cols) {
        const int all = static_cast<int>(up(static_cast<std::size_t>(cols))) + 2 * kBefore;
        return {tokens, all, tokens, all};
    }
    static Values wide(const Values& values, int tokens, int cols) {
        const int all = shape(tokens, cols).cols;
        Values out(size_of(tokens, all), kNan);
        for (int r = 0; r < tokens; ++r)
            for (int c = 0; c < cols; ++c) out[at(r, all, kBefore + c)] = values[at(r, cols, c)];
        return out;
    }
    int cols_;
    OnDevice all_;
    HeadMatrix view_;
};

Matrix<double> wide(const Values& values, std::size_t rows, std::size_t cols) {
    Matrix<double> m(rows, cols);
    std::ranges::copy(values, m.values.begin());
    return m;
}
Values narrow(const Matrix<double>& m) { return {m.values.begin(), m.values.end()}; }

// (sequences heads context, context) values as rows of p_stride, `filler` behind them.
Values strided(const Values& p, int context, int stride, float filler) {
    const auto rows = static_cast<int>(p.size()) / context;
    return pad(p, {rows, context, rows, stride}, filler);
}

}  // namespace

TEST_CASE("the six operations of attention are core's, and repeat their bytes") {
    NEEDS_GPU();
    for (const auto& [z, stride] : kProblems)
        for (const Element element : kBoth) {
            CAPTURE(z.context);
            CAPTURE(z.heads);
            CAPTURE(z.head_size);
            CAPTURE(static_cast<int>(element));
            const auto sz = [](int n) { return static_cast<std::size_t>(n); };
            const AttentionShape shape{sz(z.sequences), sz(z.context), sz(z.heads), sz(z.kv_heads),
                                       sz(z.head_size)};
            const int tokens = z.sequences * z.context, q_cols = z.heads * z.head_size,
                      k_cols = z.kv_heads * z.head_size, rows = tokens * z.heads;
            const bool round = element == Element::bf16;
            const Values q = normals(size_of(tokens, q_cols), 1, element, 2),
                         k = normals(size_of(tokens, k_cols), 2, element),
                         v = normals(size_of(tokens, k_cols), 3, element),
                         dout = normals(size_of(tokens, q_cols), 4, element);
            const Heads q_memory(q, tokens, q_cols, element), k_memory(k, tokens, k_cols, element),
                v_memory(v, tokens, k_cols, element), dout_memory(dout, tokens, q_cols, element);
            const Matrix<double> wide_q = wide(q, shape.rows(), shape.query_cols()),
                                 wide_k = wide(k, shape.rows(), shape.key_cols()),
                                 wide_v = wide(v, shape.rows(), shape.key_cols()),
                                 wide_dout = wide(dout, shape.rows(), shape.query_cols());
            Matrix<double> p, out, dv, ds, dq, dk;
            attention_probabilities(wide_q, wide_k, shape, p);
            const double tolerance = half_step(element);

            // P, from zeros above the diagonal up to the end of the stride.
            Buffer<float> scores(size_of(rows, stride));
            const auto scores_of = [&](const auto& launch) {
                scores.upload(Values(scores.size(), kPoison));
                launch();
                done();
                return scores.download();
            };
            const auto probabilities = [&] {
                attention_probabilities(q_memory.view(), k_memory.view(), element, z, scores.get(), stride,
                                        nullptr);
            };
            const Values found_p = scores_of(probabilities);
            CHECK(far(found_p, strided(narrow(p), z.context, stride, 0), 5e-6, 1e-30) == 0);
            CHECK(different(scores_of(probabilities), found_p) == 0);
            std::size_t above = 0;
            for (int r = 0; r < rows; ++r)
                for (int c = r % z.context + 1; c < stride; ++c) above += found_p[at(r, stride, c)] != 0;
            CHECK(above == 0);

            // Of core's P, with NaN behind each row. As an operand it is rounded.
            const Values narrow_p = narrow(p);
            p = wide(narrow_p, p.rows, p.cols);
            const Matrix<double> operand = wide(rounded(narrow_p, round), p.rows, p.cols);
            const Buffer<float> weights = on_device(strided(narrow_p, z.context, stride, kNan));
            const auto product = [&](int cols, const Matrix<double>& expected, double absolute,
                                     const auto& launch) {
                Values first;
                for (int again = 0; again < 2; ++again) {
                    const Heads result(tokens, cols, element);
                    launch(result.view());
                    done();
                    const Values found = result.values();
                    CHECK(far(found, expected.values, tolerance, absolute) == 0);
                    if (again) CHECK(different(found, first) == 0);
                    first = found;
                }
            };
            attention_output(operand, wide_v, shape, out);
            product(q_cols, out, 4e-6, [&](const HeadMatrix& to) {
                attention_output(weights.get(), stride, v_memory.view(), element, z, round, to, nullptr);
            });
            attention_value_gradient(operand, wide_dout, shape, dv);
            const double many = 4e-6 * std::sqrt(static_cast<double>(z.context * shape.group()));
            product(k_cols, dv, many, [&](const HeadMatrix& to) {
                attention_value_gradient(weights.get(), stride, dout_memory.view(), element, z, round, to,
                                         nullptr);
            });
            attention_score_gradient(p, wide_dout, wide_v, shape, ds);
            const auto score_gradient = [&] {
                attention_score_gradient(weights.get(), stride, dout_memory.view(), v_memory.view(), element,
                                         z, scores.get(), nullptr);
            };
            const Values found_ds = scores_of(score_gradient);
            CHECK(far(found_ds, strided(narrow(ds), z.context, stride, 0), 1e-6,
                      1e-6 * std::sqrt(z.head_size) * 4) == 0);
            CHECK(different(scores_of(score_gradient), found_ds) == 0);
            const Values narrow_ds = narrow(ds);
            ds = wide(rounded(narrow_ds, round), ds.rows, ds.cols);
            const Buffer<float> slopes = on_device(strided(narrow_ds, z.context, stride, kNan));
            attention_query_gradient(ds, wide_k, shape, dq);
            product(q_cols, dq, many * 4, [&](const HeadMatrix& to) {
                attention_query_gradient(slopes.get(), stride, k_memory.view(), element, z, round, to,
                                         nullptr);
            });
            attention_key_gradient(ds, wide_q, shape, dk);
            product(k_cols, dk, many * 8, [&](const HeadMatrix& to) {
                attention_key_gradient(slopes.get(), stride, q_memory.view(), element, z, round, to, nullptr);
            });
        }
}

TEST_CASE("a NaN in a query leaves the other rows of P and of the output alone") {
    NEEDS_GPU();
    const AttentionSizes z{1, 130, 2, 1, 16};
    const int tokens = 130, cols = 32;
    Values q = normals(size_of(tokens, cols), 1), k = normals(size_of(tokens, 16), 2);
    q[at(70, cols, 3)] = kNan;
    const Heads q_memory(q, tokens, cols, Element::f32), k_memory(k, tokens, 16, Element::f32),
        out(tokens, cols, Element::f32);
    const Buffer<float> p(size_of(2 * tokens, 130));
    attention_probabilities(q_memory.view(), k_memory.view(), Element::f32, z, p.get(), 130, nullptr);
    attention_output(p.get(), 130, k_memory.view(), Element::f32, z, false, out.view(), nullptr);
    done();
    const Values found = p.download(), mixed = out.values();
    for (int r = 0; r < 2 * tokens; ++r)
        for (int c = 0; c < 130; ++c) REQUIRE(std::isnan(found[at(r, 130, c)]) == (r == 70 && c <= 70));
    for (int r = 0; r < tokens; ++r)
        for (int c = 0; c < cols; ++c) REQUIRE(std::isnan(mixed[at(r, cols, c)]) == (r == 70 && c < 16));
}
