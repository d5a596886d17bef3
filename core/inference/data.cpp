#include "core/inference/data.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/nn/pictures/digits.h"
#include "core/nn/streams.h"

namespace fp8lab {
namespace {

constexpr std::uint64_t kTeacherRows = 0x7E57;  // seed of the rows: any fixed number that no training has
constexpr std::size_t kTestRows = 449, kTrainRows = 1348;

DenseBatch teacher_rows(const TrainedMlp& network, std::size_t rows, unsigned place) {
    DenseBatch out{Matrix<float>(rows, network.inputs()), {}};
    Rng(kTeacherRows, stream(Draw::data, 0, 0, place)).fill_normal(out.x.values);
    Teacher(static_cast<int>(network.inputs()), static_cast<int>(network.outputs())).answer(out.x, out.y);
    return out;
}

DenseBatch load(const TrainedMlp& network, const std::string& option, const std::string& text) {
    constexpr std::string_view kNpy = "npy:";
    const std::size_t comma = text.find(',');
    if (!text.starts_with(kNpy) || comma == text.npos || comma == kNpy.size() || comma + 1 == text.size())
        throw usage_error(option, "takes npy:X,Y, two files; got '" + text + "'");
    const std::string x_path = text.substr(kNpy.size(), comma - kNpy.size());
    DenseBatch data = load_npy_data(x_path, text.substr(comma + 1));
    if (data.x.cols != network.inputs())
        throw input_error(
            x_path, fmt::format("has {} columns, the network {} inputs", data.x.cols, network.inputs()));
    const std::string y_path = text.substr(comma + 1);
    if (data.y.cols != network.outputs())
        throw input_error(
            y_path, fmt::format("has {} columns, the network {} outputs", data.y.cols, network.outputs()));
    if (network.classifies && !is_one_hot(data.y))
        throw input_error(y_path, "the network classifies: its rows must be one-hot");
    return data;
}

}  // namespace

InferenceData data_of_task(const TrainedMlp& network) {
    const std::string task = option_in(network.command_line, "--task");
    const bool sizes_fit = network.inputs() == kDigitPixels && network.outputs() == kDigitClasses;
    if (task == to_string(TaskKind::digits) && sizes_fit) {
        const DigitData& digits = digit_data();
        return {digits.test, digits.train.x, fmt::format("{} test digits", digits.test.x.rows)};
    }
    if (task == to_string(TaskKind::teacher))
        return {teacher_rows(network, kTestRows, 0), teacher_rows(network, kTrainRows, 1).x,
                fmt::format("{} rows of the teacher", kTestRows)};
    throw usage_error("--data", fmt::format("no data: sensitivity needs inputs; name files with {} columns",
                                            network.inputs()));
}

InferenceData data_of_files(const TrainedMlp& network, const std::string& test, const std::string& train) {
    InferenceData out{.test = load(network, "--data", test)};
    if (!train.empty()) out.train_x = load(network, "--train", train).x;
    out.name = fmt::format("{} rows", out.test.x.rows);
    return out;
}

}  // namespace fp8lab
