#include "core/tensors/tensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/threads/parallel.h"

using namespace fp8lab;

namespace {

double rms(const Tensor& tensor) {
    double squares = 0;
    for (const float x : tensor.values) squares += static_cast<double>(x) * static_cast<double>(x);
    return std::sqrt(squares / static_cast<double>(tensor.values.size()));
}

double median_magnitude(std::vector<float> values) {
    for (float& x : values) x = std::fabs(x);
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return static_cast<double>(*middle);
}

}  // namespace

TEST_CASE("a specification and a seed give the same numbers as ever") {
    struct Row {
        const char* kind;
        float first, second, third, last;
        double sum;
    };
    for (const Row& row :
         {Row{"normal", 5.62163925F, 4.90473366F, 1.44694805F, 0.726525605F, 50.339349573740037},
          Row{"laplace", 0.257185757F, -0.39986679F, -3.49692297F, 0.375923395F, -202.46533610329789},
          Row{"uniform", 0.593282998F, -0.892692089F, -4.19669914F, 0.843843699F, -201.93118710909039},
          Row{"lognormal", 1.62034464F, -4.50968552F, -0.367092639F, -1.41655934F, 78.092392483726144}}) {
        CAPTURE(std::string(row.kind));
        const TensorSpec spec{.kind = row.kind, .size = 3, .sigma = 1.5, .seed = 7, .rows = 1, .cols = 1000};
        const Tensor tensor = make_tensor(spec);
        REQUIRE(tensor.values.size() == 1000);
        CHECK(tensor.values[0] == row.first);
        CHECK(tensor.values[1] == row.second);
        CHECK(tensor.values[2] == row.third);
        CHECK(tensor.values[999] == row.last);
        CHECK(std::accumulate(tensor.values.begin(), tensor.values.end(), 0.0) == doctest::Approx(row.sum));
    }
}

TEST_CASE("the tensors have the size that was asked for and repeat with their seed") {
    for (const char* kind : {"normal", "uniform", "laplace"}) {
        CAPTURE(std::string(kind));
        CHECK(rms(make_tensor({.kind = kind, .size = 3, .cols = 200000})) ==
              doctest::Approx(3).epsilon(0.02));
    }
    TensorSpec spec{.kind = "lognormal", .size = 5, .sigma = 2, .cols = 100001};
    const std::vector<float> values = make_tensor(spec).values;
    CHECK(values == make_tensor(spec).values);
    spec.seed += 1;
    CHECK(values != make_tensor(spec).values);
    CHECK(std::count_if(values.begin(), values.end(), [](float x) { return x < 0; }) ==
          doctest::Approx(50000).epsilon(0.02));
    CHECK(median_magnitude(values) == doctest::Approx(5).epsilon(0.03));
}

TEST_CASE("a tensor's shape does not change its numbers") {
    const Tensor row = make_tensor({.rows = 1, .cols = 600}), matrix = make_tensor({.rows = 20, .cols = 30});
    CHECK(matrix.rows == 20);
    CHECK(matrix.cols == 30);
    CHECK(matrix.values == row.values);
}

TEST_CASE("the seed notebook's array, zeros and nothing") {
    const Tensor decades = make_tensor({.kind = "decades"});
    CHECK(decades.rows == 1);
    CHECK(decades.cols == 7);
    CHECK(decades.values == std::vector<float>{0.001F, 0.01F, 0.1F, 1, 10, 100, 1000});
    const Tensor zeros = make_tensor({.kind = "zeros", .rows = 2, .cols = 3});
    CHECK(zeros.values == std::vector<float>(6));
    CHECK(make_tensor({.kind = "none"}).values.empty());
}

TEST_CASE("a tensor has the same numbers with any number of threads") {
    const int before = threads();
    for (const char* kind :
         {"normal", "lognormal", "laplace", "uniform", "student_t", "swiglu_h", "outlier_channel"}) {
        CAPTURE(kind);
        const TensorSpec spec{.kind = kind, .cols = 100001};  // the last pair is half
        set_threads(1);
        const std::vector<float> one = make_tensor(spec).values;
        set_threads(3);
        CHECK(make_tensor(spec).values == one);
    }
    set_threads(before);
}

// Oracles: the distribution function of t with 3 degrees of freedom, F(t) = 1/2 + (atan(t / sqrt 3) +
// t / (sqrt 3 (1 + t^2 / 3))) / pi; and the moments of silu(g) u by the trapezoidal rule over g.
TEST_CASE("Student's t, SwiGLU h and outlier channels have the distributions that they say") {
    constexpr int kCount = 1 << 20;
    const std::vector<float> t = make_tensor({.kind = "student_t", .size = 2, .cols = kCount}).values;
    for (const double at : {-4.0, -1.0, 0.0, 0.5, 2.0, 8.0}) {
        const double below =
            static_cast<double>(
                std::count_if(t.begin(), t.end(), [&](float x) { return static_cast<double>(x) < 2 * at; })) /
            kCount;
        const double root = std::sqrt(3.0);
        const double expected =
            0.5 + (std::atan(at / root) + at / (root * (1 + at * at / 3))) / 3.14159265358979;
        CHECK(std::fabs(below - expected) < 5 * std::sqrt(0.25 / kCount));
    }
    double mean_square = 0;  // of silu(g), g ~ N(0, 4)
    for (double g = -20; g <= 20; g += 0.01) {
        const double silu = g / (1 + std::exp(-g));
        mean_square += silu * silu * std::exp(-g * g / 8) / std::sqrt(8 * 3.14159265358979) * 0.01;
    }
    CHECK(rms(make_tensor({.kind = "swiglu_h", .size = 3, .cols = kCount})) ==
          doctest::Approx(3 * 2 * std::sqrt(mean_square)).epsilon(0.02));
    const Tensor channels = make_tensor({.kind = "outlier_channel", .size = 1, .rows = 64, .cols = 48});
    const Tensor plain = make_tensor({.kind = "normal", .size = 1, .rows = 64, .cols = 48});
    for (std::size_t i = 0; i < plain.values.size(); ++i)
        CHECK(channels.values[i] == plain.values[i] * (i % 48 % 16 == 3 ? 30.0F : 1.0F));
}

TEST_CASE("the drawn picture has dark shades, a bright moon and stars of one pixel, it is always the same") {
    const Tensor picture = make_tensor({.kind = "picture"});
    CHECK(picture.picture);
    CHECK((picture.rows == 128 && picture.cols == 128));
    CHECK(picture.values == make_tensor({.kind = "picture", .seed = 9, .rows = 3, .cols = 3}).values);
    CHECK(std::ranges::all_of(picture.values, [](float x) { return x > 0 && x <= 1; }));
    const auto share = [&](auto is) {
        return static_cast<double>(std::ranges::count_if(picture.values, is)) / (128.0 * 128.0);
    };
    CHECK(share([](float x) { return x < 0.35F; }) > 0.5);
    CHECK(share([](float x) { return x > 0.7F; }) > 0.02);
    TensorSpec spec;
    CHECK_THROWS_AS(set_field(tensor_field(spec, "tensor"), "picture"), Error);  // of labs that show none
    set_field(tensor_or_picture_field(spec), "picture");
    CHECK(spec.kind == "picture");
}

TEST_CASE("outliers take the place of as many elements as asked for and leave the others alone") {
    TensorSpec spec{.size = 2, .rows = 10, .cols = 100};
    const Tensor plain = make_tensor(spec);
    spec.outliers = 5, spec.outlier_ratio = 64;
    const Tensor tensor = make_tensor(spec);
    REQUIRE(tensor.outliers.size() == 5);
    CHECK(std::is_sorted(tensor.outliers.begin(), tensor.outliers.end()));
    const std::set<std::size_t> places(tensor.outliers.begin(), tensor.outliers.end());
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
        const float expected = std::copysign(128.0F, plain.values[i]);
        CHECK(tensor.values[i] == (places.contains(i) ? expected : plain.values[i]));
    }
    Tensor made_of_plain = plain;
    put_outliers(spec, made_of_plain);
    CHECK(made_of_plain.values == tensor.values);
    CHECK(made_of_plain.outliers == tensor.outliers);
    spec.cols = 1, spec.outliers = 1000;  // more than there are elements
    CHECK(make_tensor(spec).outliers.size() == 10);
}

TEST_CASE("rows spread by as many binades as asked for, a column stands out by its factor") {
    TensorSpec spec{.rows = 400, .cols = 300};
    const Tensor plain = make_tensor(spec);
    spec.row_spread = 3;
    const Tensor spread = make_tensor(spec);
    double squares = 0;
    for (std::size_t r = 0; r < 400; ++r) {
        const float factor = spread.values[r * 300] / plain.values[r * 300];
        for (std::size_t c = 0; c < 300; ++c)
            CHECK(spread.values[r * 300 + c] ==
                  doctest::Approx(static_cast<double>(factor * plain.values[r * 300 + c])));
        squares += std::pow(std::log2(static_cast<double>(factor)), 2);
    }
    CHECK(std::sqrt(squares / 400) == doctest::Approx(3).epsilon(0.1));
    spec.row_spread = 0, spec.outlier_column = 50;
    const Tensor column = make_tensor(spec);
    for (std::size_t i = 0; i < plain.values.size(); ++i)
        CHECK(column.values[i] == plain.values[i] * (i % 300 == 100 ? 50.0F : 1.0F));
}

TEST_CASE("an unknown kind lists the kinds, and a tensor that fills the memory is refused") {
    CHECK_THROWS_WITH_AS(make_tensor({.kind = "gauss"}), doctest::Contains("valid: normal lognormal"), Error);
    CHECK_THROWS_WITH_AS(make_tensor({.rows = 1 << 20, .cols = 1 << 20}), doctest::Contains("2^26"), Error);
}

TEST_CASE("every lab gets a tensor's fields under the same names") {
    TensorSpec spec;
    for (const char* name : {"tensor", "size", "sigma", "seed", "rows", "cols", "outliers", "outlier_ratio",
                             "row_spread", "outlier_column", "file"}) {
        const Field field = tensor_field(spec, name, true);
        CHECK(field.info.name == name);
        CHECK(field.info.more);
        CHECK_FALSE(field.info.help.empty());
    }
    set_field(tensor_field(spec, "tensor"), "laplace");
    CHECK(spec.kind == "laplace");
    CHECK_THROWS_AS(set_field(tensor_field(spec, "tensor"), "none"), Error);
    CHECK_THROWS_WITH_AS(tensor_field(spec, "width"), doctest::Contains("outlier_ratio"), Error);
}

TEST_CASE("a field without effect on the tensor can be told") {
    CHECK_FALSE(has_effect({.kind = "normal"}, "sigma"));
    CHECK(has_effect({.kind = "lognormal"}, "sigma"));
    CHECK_FALSE(has_effect({.kind = "decades"}, "cols"));
    CHECK_FALSE(has_effect({.kind = "normal"}, "outlier_ratio"));
    CHECK(has_effect({.kind = "zeros", .outliers = 1}, "outlier_ratio"));
    CHECK_FALSE(has_effect({.file = "x.npy"}, "tensor"));
    CHECK(has_effect({.file = "x.npy"}, "file"));
    CHECK(has_effect({.file = "x.npy"}, "format"));  // not a field of the tensor's
    // What is said to have none has none.
    for (const char* kind : {"decades", "zeros", "none", "picture"}) {
        TensorSpec spec{.kind = kind};
        const std::vector<float> before = make_tensor(spec).values;
        spec.seed += 1, spec.size *= 2;
        CHECK(make_tensor(spec).values == before);
    }
}
