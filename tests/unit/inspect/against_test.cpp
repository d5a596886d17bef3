#include "core/inspect/against.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/files/files.h"
#include "core/tensors/safetensors.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

std::shared_ptr<const TensorStore> store_of(const Scratch& scratch, const char* name,
                                            const SafeTensors& file) {
    write_file(scratch.path / name, to_safetensors(file));
    return std::make_shared<TensorStore>(scratch.path / name);
}

Against compare(const std::shared_ptr<const TensorStore>& model,
                const std::shared_ptr<const TensorStore>& original) {
    const Scan scan(model, {.recipes = parse_scan_recipes("bf16")});
    return against_original(*model, scan.rows(), original);
}

}  // namespace

TEST_CASE("bare names are without prefixes and without what marks codes") {
    CHECK(bare_name("model.language_model.layers.0.down.weight_packed") == "layers.0.down.weight");
    CHECK(bare_name("language_model.model.layers.0.w") == "layers.0.w");
    CHECK(bare_name("layers.0.down._weight_qdata") == "layers.0.down.weight");
    CHECK(bare_name("experts.down_proj_blocks") == "experts.down_proj");
    CHECK(bare_name("layers.0.down.weight") == "layers.0.down.weight");
}

TEST_CASE("errors against an original, by hand, and the worst row") {
    const Scratch scratch;
    SafeTensors a, b;
    a.tensors["model.w"] = {{3, 2}, {1, 2, 3, 4, 0, 5}};
    b.tensors["w"] = {{3, 2}, {1, 2, 3, 3, 0, 0}};
    a.tensors["only"] = {{1}, {1}}, b.tensors["other"] = {{1}, {1}};
    a.tensors["v"] = {{2}, {1, 1}}, b.tensors["v"] = {{1, 2}, {1, 1}};
    const Against got = compare(store_of(scratch, "a.safetensors", a), store_of(scratch, "b.safetensors", b));
    REQUIRE(got.rows.size() == 3);
    CHECK(got.unmatched == std::vector<std::string>{"only", "v"});
    CHECK(got.unmatched_there == std::vector<std::string>{"other"});  // v is there, with another shape
    CHECK(got.notes() ==
          std::vector<std::string>{
              "2 tensors of the model have no counterpart in the original, by name and shape: only, v",
              "1 tensor of the original has no counterpart in the model, by name and shape: other"});
    REQUIRE(got.rows[0].has_value());
    // Signal 1 + 4 + 9 + 9 = 23, error 1 + 25 = 26, product 1 + 4 + 9 + 12 = 26, own 55.
    CHECK(got.rows[0]->rel_l2 == doctest::Approx(std::sqrt(26.0 / 23)));
    CHECK(got.rows[0]->sqnr_db == doctest::Approx(10 * std::log10(23.0 / 26)));
    CHECK(got.rows[0]->cosine == doctest::Approx(26 / std::sqrt(23.0 * 55)));
    CHECK(got.rows[0]->worst_row == 1);  // row 2 of the original is all 0
    CHECK(got.rows[0]->worst_row_db == doctest::Approx(10 * std::log10(18.0)));
}

TEST_CASE("fused matrices match their parts on either side, by the rows of each") {
    const Scratch scratch;
    SafeTensors fused, parts;
    fused.tensors["a.qkv_proj.weight"] = {{6, 1}, {1, 2, 3, 4, 5, 6}};
    parts.tensors["a.q_proj.weight"] = {{3, 1}, {1, 2, 3}};
    parts.tensors["a.k_proj.weight"] = {{1, 1}, {4}};
    parts.tensors["a.v_proj.weight"] = {{2, 1}, {5, 6}};
    fused.tensors["a.gate_up_proj.weight"] = {{2, 1}, {7, 8}};
    parts.tensors["a.gate_proj.weight"] = {{1, 1}, {7}};
    parts.tensors["a.up_proj.weight"] = {{1, 1}, {9}};
    const auto one = store_of(scratch, "one.safetensors", fused),
               other = store_of(scratch, "other.safetensors", parts);
    const Against whole = compare(one, other), split = compare(other, one);
    CHECK(whole.notes().empty());
    CHECK(split.notes().empty());
    CHECK(whole.rows[1]->rel_l2 == 0);  // qkv
    CHECK(std::isinf(whole.rows[1]->sqnr_db));
    CHECK(whole.rows[0]->worst_row == 1);
    for (std::size_t i = 0; i < split.rows.size(); ++i) {
        CAPTURE(other->tensors()[i].name);
        CHECK((split.rows[i]->rel_l2 == 0) == (other->tensors()[i].name != "a.up_proj.weight"));
    }
    const auto rows = Counterparts(*other, *one).of(*other->find("a.v_proj.weight"));
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].first == 4);
    CHECK(rows[0].count == 2);
    parts.tensors["a.v_proj.weight"] = {{1, 1}, {5}};
    const auto too_short = store_of(scratch, "short.safetensors", parts);
    CHECK(Counterparts(*one, *too_short).of(*one->find("a.qkv_proj.weight")).empty());
}

TEST_CASE("stacks of experts match experts of their own, on either side, whole or gate and up") {
    const Scratch scratch;
    SafeTensors stack, apart, halves;
    std::vector<float> values(2 * 4 * 3);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
    const auto rows = [&](std::size_t first, std::size_t count) {
        return std::vector<float>(values.begin() + static_cast<std::ptrdiff_t>(first * 3),
                                  values.begin() + static_cast<std::ptrdiff_t>((first + count) * 3));
    };
    stack.tensors["model.mlp.experts.gate_up_proj"] = {{2, 4, 3}, values};
    for (std::size_t e = 0; e < 2; ++e) {
        const std::string begin = "mlp.experts." + std::to_string(e) + ".";
        apart.tensors[begin + "gate_up_proj.weight"] = {{4, 3}, rows(4 * e, 4)};
        halves.tensors[begin + "gate_proj.weight"] = {{2, 3}, rows(4 * e, 2)};
        halves.tensors[begin + "up_proj.weight"] = {{2, 3}, rows(4 * e + 2, 2)};
    }
    const auto a = store_of(scratch, "a.safetensors", stack), b = store_of(scratch, "b.safetensors", apart),
               c = store_of(scratch, "c.safetensors", halves);
    for (const auto& [model, original] : {std::pair{a, b}, {b, a}, {a, c}, {c, a}}) {
        const Against got = compare(model, original);
        CHECK(got.notes().empty());
        for (const auto& row : got.rows) {
            REQUIRE(row.has_value());
            CHECK(row->rel_l2 == 0);
        }
    }
    // One expert less, one of another shape, and transposed matrices are told apart.
    const auto why = [&](const SafeTensors& original) {
        const auto there = store_of(scratch, "d.safetensors", original);
        return Counterparts(*a, *there).find(a->tensors()[0]);
    };
    SafeTensors less = apart;
    less.tensors.erase("mlp.experts.1.gate_up_proj.weight");
    CHECK(why(less).why == "it has 2 experts, the original 1");
    CHECK_FALSE(why(less).other_order);
    SafeTensors turned;
    for (const auto& [name, tensor] : apart.tensors) turned.tensors[name] = {{3, 4}, tensor.values};
    CHECK(why(turned).other_order);
    CHECK(why(turned).why == "the matrices of its experts are transposed in the original");
    SafeTensors other;
    other.tensors["mlp.experts.0.gate_up_proj.weight"] = {{5, 3}, std::vector<float>(15)};
    CHECK(why(other).why == "its experts are (4, 3), in the original (5, 3)");
    CHECK(why({}).why == "not in the original");
}
