// The Workbench compares a quantised model with its original.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/files/bounded_file.h"
#include "core/files/files.h"
#include "labs/set_fields.h"
#include "labs/workbench/model.h"
#include "tests/samples/shipped_faults.h"
#include "tests/scratch.h"
#include "tests/unit/verify/faulty_files.h"

using namespace fp8lab;
using namespace fp8lab::workbench;

namespace {

// Three layers of one kind: the second one's scales are inverse. "other" is not in the original.
struct Files {
    Scratch scratch;
    faulty::Shape shape{.rows = 64, .cols = 128};
    Files() {
        faulty::File model, original;
        for (int layer = 0; layer < 3; ++layer) {
            const std::string name = "layers." + std::to_string(layer) + ".down";
            const faulty::Values w = faulty::weights(static_cast<std::uint64_t>(layer + 1), shape);
            faulty::Weight weight = faulty::cast("e4m3-row", w, shape);
            if (layer == 1)
                for (float& scale : weight.scales) scale = 1 / scale;
            faulty::add(model, name, weight);
            original[name + ".weight"] = faulty::bf16(w, {shape.rows, shape.cols});
        }
        faulty::add(model, "other", faulty::cast("e4m3-row", faulty::weights(9, shape), shape));
        faulty::write_tensors(scratch.path / "model.safetensors", model);
        faulty::write_tensors(scratch.path / "original.safetensors", original);
    }
    std::vector<std::string> fields(const std::string& compare_as) const {
        return {"file=" + (scratch / "model.safetensors"), "compare=" + (scratch / "original.safetensors"),
                "compare_as=" + compare_as};
    }
};

// A tensor of each verdict: a healthy one, one with another shape, codes whose scales divide them nowhere, a layout that is
// not read, a negative scale above right values, and one that only the original has.
struct OddFiles {
    Scratch scratch;
    faulty::Shape shape{.rows = 64, .cols = 128};
    OddFiles() {
        const auto bf16 = [&](std::uint64_t seed, std::vector<std::size_t> extents) {
            return faulty::bf16(faulty::weights(seed, shape), std::move(extents));
        };
        faulty::File model, original;
        const auto cast = [&](std::uint64_t seed) {
            return faulty::cast("e4m3-row", faulty::weights(seed, shape), shape);
        };
        faulty::add(model, "fine", cast(1));
        original["fine.weight"] = bf16(1, {64, 128});
        faulty::add(model, "misshaped", cast(2));
        original["misshaped.weight"] = bf16(2, {128, 64});
        faulty::add(model, "broken", cast(3));
        model["broken.weight_scale"] = faulty::f32(faulty::Values(7, 1.0F), {7, 1});
        original["broken.weight"] = bf16(3, {64, 128});
        model["gptq.qweight"] = {"I32", {8, 128}, faulty::Bytes(4096)};
        original["gptq.weight"] = bf16(4, {64, 128});
        faulty::Weight negative = cast(5);
        negative.scales[0] = -negative.scales[0];
        for (std::size_t i = 0; i < shape.cols; ++i) negative.codes[i] ^= 0x80;
        faulty::add(model, "negative", negative);
        original["negative.weight"] = bf16(5, {64, 128});
        original["missing.weight"] = bf16(6, {64, 128});
        faulty::write_tensors(scratch.path / "model.safetensors", model);
        faulty::write_tensors(scratch.path / "original.safetensors", original);
    }
};

void set_all(WorkbenchLab& lab, const std::vector<std::string>& assignments) {
    for (const std::string& each : assignments) set_field(lab.fields(), each);
    lab.update();
}

std::pair<double, std::string> metric(const WorkbenchLab& lab, std::string_view name) {
    const auto metrics = lab.metrics();
    const auto found = std::ranges::find(metrics, name, &Metric::name);
    REQUIRE_MESSAGE(found != metrics.end(), name);
    return {found->value, found->text};
}

}  // namespace

TEST_CASE("the Workbench against an original: faults come first, each with its sentence") {
    const Files files;
    WorkbenchLab lab;
    set_all(lab, files.fields("original"));
    CHECK(lab->is_verified());
    CHECK(lab->title() == "2 of 4 tensors have a fault");  // "other" is not in the original
    CHECK(metric(lab, "faults").first == 2);
    CHECK_FALSE(lab->comparison.has_value());
    // Folded, the kind stands for its member with the fault.
    REQUIRE_FALSE(lab->list.empty());
    CHECK(lab->list[0].name == "layers.*.down.weight");
    CHECK(lab->scanned().store->tensors()[lab->list[0].worst].name == "layers.1.down.weight");
    CHECK(lab->verified_of(lab->list[0])->diagnosis->fault == "scale-inverse");
    CHECK(metric(lab, "fault").second == "scale-inverse");
    CHECK(metric(lab, "mended_rel_l2").first == doctest::Approx(0.026).epsilon(0.1));
    CHECK(metric(lab, "against_rel_l2").first > 1);
    CHECK(lab->verified_words().starts_with("Scale is the inverse: relative L2 "));
    CHECK(lab->verified_words().ends_with(" without this fault"));
    set_all(lab, {"fold=false"});
    CHECK(lab->list[0].name == "layers.1.down.weight");
    set_all(lab, {"order=name"});
    CHECK(lab->list[0].name == "layers.0.down.weight");
    set_all(lab, {"tensor=layers.0.down.weight"});
    CHECK(metric(lab, "fault").second == "fine");
    CHECK(std::isnan(metric(lab, "mended_rel_l2").first));
    CHECK(lab->verified_words().starts_with("As near to the original as a cast can be: relative L2 0.02"));
    set_all(lab, {"tensor=other.weight"});
    CHECK(metric(lab, "fault").second == "fault");
    CHECK(lab->verified_words() == "Not in the original");
}

TEST_CASE("the Workbench judges each tensor as verify does, also misshaped, unread and missing ones") {
    const OddFiles files;
    const Scratch& scratch = files.scratch;
    const auto store = [&](const char* name) { return std::make_shared<TensorStore>(scratch.path / name); };
    const Verification verb = verify(store("model.safetensors"), store("original.safetensors"));

    WorkbenchLab lab;
    set_all(lab, {"file=" + (scratch / "model.safetensors"), "compare=" + (scratch / "original.safetensors"),
                  "compare_as=original", "fold=false"});
    CHECK(lab->title() == "3 of 5 tensors have a fault, 1 not read; 1 of the original is not in the model");
    CHECK(verb.faults() == 4);  // with the missing one
    REQUIRE(lab->missing().size() == 1);
    CHECK(lab->missing()[0] == "missing.weight");
    CHECK(metric(lab, "faults").first == 3);
    std::size_t found = 0;
    for (const auto& each : lab->scans->verified) {
        if (!each) continue;
        const auto same = std::ranges::find_if(
            verb.tensors, [&](const Verified& of) { return of.tensor->name == each->tensor->name; });
        REQUIRE(same != verb.tensors.end());
        CAPTURE(each->tensor->name);
        CHECK(each->verdict() == same->verdict());
        CHECK(each->sentence() == same->sentence());
        ++found;
    }
    CHECK(found + 1 == verb.tensors.size());
    const auto words_of = [&](const std::string& tensor) {
        set_all(lab, {"tensor=" + tensor});
        return lab->verified_words();
    };
    CHECK(words_of("misshaped.weight") == "Its shape is (64, 128), in the original (128, 64)");
    CHECK(words_of("negative.weight").find("negative") != std::string::npos);
    CHECK(metric(lab, "fault").second == "fault");
    CHECK(words_of("gptq.qweight").starts_with("Not read: "));
    CHECK(metric(lab, "fault").second == "not read");
    CHECK_FALSE(words_of("broken.weight").empty());
    CHECK(words_of("fine.weight").starts_with("As near to the original as a cast can be"));
}

TEST_CASE("the Workbench's CSV has the columns of an original, and not where an exercise covers them") {
    const Files files;
    WorkbenchLab lab;
    set_all(lab, files.fields("original"));
    const std::string csv = lab.table_csv();
    const std::size_t line = csv.find("\nlayers.0.down.weight,") + 1;
    const std::string row = csv.substr(line, csv.find('\n', line) - line);
    REQUIRE(csv.find(",against_sqnr_db,against_rel_l2,against_cosine,worst_row,worst_row_db\n") != csv.npos);
    // As the verb inspect measures it.
    const auto original = std::make_shared<const TensorStore>(files.scratch / "original.safetensors");
    const Against against = against_original(*lab->scanned().store, lab->scanned().rows, original);
    const auto first = std::ranges::find_if(lab->scanned().rows, [&](const ScanRow& each) {
        return lab->scanned().store->tensors()[each.tensor].name == "layers.0.down.weight";
    });
    const auto& known = against.rows[static_cast<std::size_t>(first - lab->scanned().rows.begin())];
    REQUIRE(known);
    CHECK(known->rel_l2 < 0.03);
    CHECK(row.ends_with("," + shortest(known->sqnr_db) + "," + shortest(known->rel_l2) + "," +
                        shortest(known->cosine) + "," + std::to_string(known->worst_row) + "," +
                        shortest(known->worst_row_db)));
    const std::size_t other = csv.find("\nother.weight,") + 1;
    CHECK(csv.substr(other, csv.find('\n', other) - other).ends_with(",,,,,"));
    set_all(lab, {"covered=true"});
    CHECK(lab.table_csv().find("against_") == std::string::npos);
    set_all(lab, {"covered=false", "compare_as=earlier"});
    CHECK(lab.table_csv().find("against_") == std::string::npos);
}

TEST_CASE("the Workbench: scales that are NaN or 0 are said of the row and of the tensor") {
    const Scratch scratch;
    const faulty::Shape shape{.rows = 64, .cols = 128};
    faulty::File model;
    faulty::Weight weight = faulty::cast("e4m3-row", faulty::weights(1, shape), shape);
    faulty::add(model, "fine", weight);
    weight.scales[3] = std::nanf("");
    weight.scales[7] = weight.scales[9] = 0;
    faulty::add(model, "odd", weight);
    faulty::write_tensors(scratch.path / "model.safetensors", model);
    WorkbenchLab lab;
    set_all(lab, {"file=" + (scratch / "model.safetensors"), "fold=false", "tensor=odd.weight"});
    CHECK(lab->has_odd_scales);
    CHECK(lab->scale_words() == "Of its 64 scales: 1 NaN, 2 zero");
    const auto odd = std::ranges::find(lab->list, std::string("odd.weight"), &TableRow::name);
    REQUIRE(odd != lab->list.end());
    CHECK(odd->scale_words() == "1 NaN, 2 zero");
    set_all(lab, {"tensor=fine.weight"});
    CHECK(lab->scale_words().empty());
    set_all(lab, {"file=", "tensor="});
    CHECK_FALSE(lab->has_odd_scales);
}

TEST_CASE("the Workbench: the second file is an earlier state unless it is called an original") {
    const Files files;
    WorkbenchLab lab;
    set_all(lab, files.fields("earlier"));
    CHECK_FALSE(lab->is_verified());
    CHECK(lab->comparison.has_value());
    CHECK(lab->verified_words().empty());
    CHECK(std::isnan(metric(lab, "faults").first));
    CHECK(metric(lab, "fault").second == "none");
    set_all(lab, {"compare_as=original"});
    CHECK(lab->is_verified());
    set_all(lab, {"compare="});
    CHECK_FALSE(lab->is_verified());
    CHECK(lab->title().starts_with("Unscaled, "));
    // Two samples that share no tensor's name and shape with the file.
    set_all(lab, {"compare=transformer-0"});
    CHECK(lab->title() == "The original has none of these tensors, by name");
    CHECK(metric(lab, "faults").first == 0);
}

TEST_CASE("the Workbench's six faulty files are what their maker makes, and each has its own fault") {
    const TensorStore sample(path_of(std::string(kTrained)));
    const Scratch scratch;
    WorkbenchLab lab;
    set_all(lab, {"file=six-faults", "compare=transformer-600", "compare_as=original"});
    CHECK(metric(lab, "faults").first == 6);
    std::set<std::string> words;
    for (const faulty::ShippedFault& each : faulty::shipped_faults(sample)) {
        CAPTURE(each.file);
        faulty::write_tensors(scratch.path / "made.safetensors", each.content);
        const auto bytes_of = [](const std::filesystem::path& path) {
            return read_bounded(path, std::size_t{1} << 20);
        };
        CHECK(bytes_of(scratch.path / "made.safetensors") ==
              bytes_of(asset("models/" + each.file + ".safetensors")));
        set_all(lab, {"tensor=" + each.file + "/" + each.tensor});
        REQUIRE(lab->verified() != nullptr);
        CHECK(lab->verified()->diagnosis->words == each.words);
        words.insert(each.words);
    }
    CHECK(words.size() == 6);
    // Covered, nothing tells them.
    set_all(lab, {"covered=true"});
    CHECK(lab->verified_words().empty());
    CHECK(lab->title() == "Which fault does each tensor have?");
}
