// A notebook by the rules of nbformat 4.5 (nbformat.v4.5.schema.json), and, where Jupyter is, executed.
#include "core/python/notebook.h"

#include <doctest/doctest.h>

#include <fstream>
#include <regex>
#include <set>

#include "core/base/error.h"
#include "core/python/recipe_code.h"
#include "tests/json.h"
#include "tests/scratch.h"
#include "torch_here.h"

using namespace fp8lab;

namespace {

std::string joined(const nlohmann::json& lines) {
    std::string out;
    for (const auto& line : lines) out += line.get<std::string>();
    return out;
}

// What a cell printed, which Jupyter may keep in several parts.
std::string printed(const nlohmann::json& cell) {
    std::string out;
    for (const auto& part : cell.at("outputs"))
        if (part.at("output_type") == "stream") out += joined(part.at("text"));
    return out;
}

Notebook of(const std::string& recipes) {
    return {.opening = {"# A title\n\nThe question.", "| a | b |\n|---|---|\n"},
            .recipes = parse_recipes(recipes)};
}

void check_cell(const nlohmann::json& cell, std::set<std::string>& ids) {
    static const std::regex kId("[a-zA-Z0-9_-]{1,64}");
    const std::string type = cell.at("cell_type"), id = cell.at("id");
    CAPTURE(id);
    CHECK(std::regex_match(id, kId));
    CHECK(ids.insert(id).second);
    CHECK(cell.at("metadata").is_object());
    REQUIRE(cell.at("source").is_array());
    REQUIRE_FALSE(cell.at("source").empty());
    for (std::size_t i = 0; i < cell.at("source").size(); ++i) {
        const std::string line = cell.at("source")[i];
        CHECK(line.ends_with('\n') == (i + 1 < cell.at("source").size()));
        CHECK(line.find('\n') >= line.size() - (line.ends_with('\n') ? 1 : 0));
    }
    if (type == "code") {
        CHECK(cell.at("execution_count").is_null());
        CHECK(cell.at("outputs") == nlohmann::json::array());
        CHECK(cell.size() == 6);
    } else {
        CHECK(type == "markdown");
        CHECK(cell.size() == 4);
    }
}

}  // namespace

TEST_CASE("a notebook is nbformat 4 with each recipe's file, and ends with the check") {
    const auto book = parsed(notebook_json(of("bf16,delayed:margin=2,current:master=none,mxfp8,bf16")));
    CHECK(book.at("nbformat") == 4);
    CHECK(book.at("nbformat_minor") == 5);
    CHECK(book.at("metadata").at("kernelspec").at("name") == "python3");
    CHECK(book.at("metadata").at("kernelspec").contains("display_name"));
    CHECK(book.at("metadata").at("language_info").at("name") == "python");
    CHECK(book.size() == 4);
    std::set<std::string> ids;
    std::string markdown;
    std::vector<std::string> code;
    for (const auto& cell : book.at("cells")) {
        check_cell(cell, ids);
        if (cell.at("cell_type") == "code")
            code.push_back(joined(cell.at("source")));
        else
            markdown += joined(cell.at("source")) + "\n";
    }
    CHECK(joined(book.at("cells")[0].at("source")) == "# A title\n\nThe question.");
    REQUIRE(code.size() == 6);  // three recipes; imports, errors, check
    const CodeTarget& target = find_code_target("pytorch");
    const char* const modules[] = {"fp8lab_bf16", "fp8lab_delayed_margin_2", "fp8lab_mxfp8"};
    const char* const recipes[] = {"bf16", "delayed:margin=2", "mxfp8"};
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(code[i] + "\n" == std::string("%%writefile ") + modules[i] + ".py\n" +
                                    recipe_code(parse_recipe(recipes[i]), target));
    CHECK(code[3].find("import fp8lab_delayed_margin_2\n") != std::string::npos);
    CHECK(code[3].ends_with("modules = [fp8lab_bf16, fp8lab_delayed_margin_2, fp8lab_mxfp8]"));
    CHECK(code[5].find("module.check()") != std::string::npos);
    CHECK(book.at("cells").back().at("cell_type") == "code");
    CHECK(markdown.find("Without code: plain PyTorch cannot express current:master=none: ") !=
          std::string::npos);
}

TEST_CASE("a notebook without a recipe that plain PyTorch has is refused with the reason") {
    CHECK_THROWS_WITH_AS((void)notebook_json(of("current:wide=first")), doctest::Contains("of a whole model"),
                         Error);
}

TEST_CASE("a notebook runs in Jupyter without a GPU, and its codes agree") {
    if (test::lacks("torch, nbconvert, ipykernel")) return;
    const Scratch scratch;
    std::ofstream(scratch / "in.ipynb")
        << notebook_json(of("bf16,delayed,rowwise:bwd=e4m3:pow2=1,mxfp8,nvfp4-te"));
    const int status = test::status_of("cd " + quoted(scratch / "") +
                                       " && CUDA_VISIBLE_DEVICES= python3 -m nbconvert --to notebook "
                                       "--execute --output out.ipynb in.ipynb 2>err");
    const std::string err = test::text_of(scratch / "err");
    CAPTURE(err);
    REQUIRE(status == 0);
    const auto book = parsed(test::text_of(scratch / "out.ipynb"));
    const std::string last = printed(book.at("cells").back());
    CHECK(last ==
          "The codes are FP8 Lab's: fp8lab_bf16 fp8lab_delayed fp8lab_rowwise_bwd_e4m3_pow2_1 fp8lab_mxfp8 "
          "fp8lab_nvfp4_te\n");
    const std::string text = printed(book.at("cells")[book.at("cells").size() - 3]);
    static const std::regex kLine(R"((\w+): y is off by ([\d.]+)%\n)");
    CHECK(std::distance(std::sregex_iterator(text.begin(), text.end(), kLine), std::sregex_iterator()) == 5);
}
