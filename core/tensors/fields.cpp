// The fields of a TensorSpec, once for every lab.
#include <algorithm>

#include "core/base/error.h"
#include "core/tensors/tensor.h"

namespace fp8lab {

namespace {

constexpr int kMostElements = 1 << 20;  // of one dimension

std::vector<Choice> kinds_to_choose() {
    const auto kinds = tensor_kinds();
    std::vector<Choice> out(kinds.begin(), kinds.end());
    std::erase_if(out, [](const Choice& kind) { return kind.id == "none" || kind.id == "picture"; });
    return out;
}

std::vector<Field> all_fields(TensorSpec& spec) {
    return {
        choice({.name = "tensor",
                .label = "Tensor",
                .help = "What is cast: drawn at random from this distribution."},
               &spec.kind, kinds_to_choose()),
        number({.name = "size",
                .label = "Size",
                .help = "The tensor's standard deviation; of a log-normal one the median of |x|."},
               &spec.size, 1e-6, 1e6, true),
        number({.name = "sigma",
                .label = "Sigma",
                .help = "Width of the log-normal distribution: the standard deviation of ln |x|."},
               &spec.sigma, 0.1, 5),
        integer({.name = "seed", .label = "Seed", .help = "Another seed, another tensor of the same kind."},
                &spec.seed, 0, 9999),
        integer({.name = "rows", .label = "Rows", .help = "Rows of the matrix."}, &spec.rows, 1,
                kMostElements, true),
        integer({.name = "cols",
                 .label = "Columns",
                 .help = "Columns of the matrix: what a GEMM sums over, and what blocks run along."},
                &spec.cols, 1, kMostElements, true),
        integer({.name = "outliers",
                 .label = "Outliers",
                 .help = "So many elements, at random places, become outliers."},
                &spec.outliers, 0, 4096),
        number({.name = "outlier_ratio",
                .label = "Outlier size",
                .unit = "sigma",
                .help = "How large an outlier is, in standard deviations of the others."},
               &spec.outlier_ratio, 1, 0x1p20, true),
        number({.name = "row_spread",
                .label = "Row spread",
                .unit = "binades",
                .help = "How unlike the rows are: the standard deviation of log2 of a row's magnitude."},
               &spec.row_spread, 0, 16),
        number({.name = "outlier_column",
                .label = "Outlier column",
                .help = "One column is multiplied by this, as the outlier channels of activations are."},
               &spec.outlier_column, 1, 0x1p20, true),
        text({.name = "file",
              .label = "Own tensor",
              .help = "FILE or FILE:TENSOR, an .npy, .safetensors or .png; empty: the generated one."},
             &spec.file),
    };
}

}  // namespace

Field tensor_field(TensorSpec& spec, std::string_view name, bool more) {
    std::vector<Field> fields = all_fields(spec);
    for (Field& field : fields) {
        if (field.info.name != name) continue;
        field.info.more = more;
        return field;
    }
    throw unknown_name("tensor_field", "field", name, fields, [](const Field& f) { return f.info.name; });
}

Field tensor_or_picture_field(TensorSpec& spec) {
    Field field = tensor_field(spec, "tensor");
    field.choices.push_back(*std::ranges::find(tensor_kinds(), "picture", &Choice::id));
    return field;
}

bool has_effect(const TensorSpec& spec, std::string_view name) {
    TensorSpec any;
    const std::vector<Field> fields = all_fields(any);
    if (find_field(fields, name) == nullptr || name == "file") return true;
    if (!spec.file.empty()) return false;
    if (name == "tensor") return true;
    if (spec.kind == "none") return false;
    const bool fixed = spec.kind == "decades" || spec.kind == "zeros" || spec.kind == "picture";
    if (name == "sigma") return spec.kind == "lognormal";
    if (name == "size") return !fixed || spec.outliers > 0;
    if (name == "seed") return !fixed || spec.outliers > 0 || spec.row_spread > 0;
    if (name == "rows" || name == "cols") return spec.kind != "decades" && spec.kind != "picture";
    if (name == "outlier_ratio") return spec.outliers > 0;
    return true;
}

}  // namespace fp8lab
