// fp8lab run LAB --notebook: a lab as a notebook.
#include <doctest/doctest.h>

#include <cstdlib>
#include <regex>

#include "process.h"
#include "tests/json.h"

namespace {

std::string joined(const nlohmann::json& lines) {
    std::string out;
    for (const auto& line : lines) out += line.get<std::string>();
    return out;
}

}  // namespace

TEST_CASE("run: --notebook has the question, the state, what was measured, and the arms as code") {
    const Scratch scratch;
    const std::string file = scratch / "out.ipynb";
    const Finished run =
        fp8lab("run L8 --set arm_b=current --set batch=32 --steps 3 --notebook " + quoted(file));
    CHECK(run.code == 0);
    CHECK(run.out.empty());
    const auto book = parsed(slurp(file));
    CHECK(book.at("nbformat") == 4);
    const auto& cells = book.at("cells");
    const std::string first = joined(cells[0].at("source"));
    CHECK(first.starts_with("# L8 Train it live\n"));
    CHECK(first.find("`fp8lab run L8 --set arm_b=current --set batch=32 --steps 3 --notebook " + file +
                     "`") != std::string::npos);
    CHECK(joined(cells[1].at("source")).find("(`arm_b`) | current |") != std::string::npos);
    CHECK(joined(cells[1].at("source")).find("(`batch`) | 32 |") != std::string::npos);
    const auto now = parsed(fp8lab("run L8 --set arm_b=current --set batch=32 --steps 3").out);
    const std::string measured = joined(cells[2].at("source"));
    CHECK(measured.find(now.at("provenance").get<std::string>()) != std::string::npos);
    for (const auto& [name, value] : now.at("metrics").items()) {
        CAPTURE(name);
        CHECK(measured.find("| `" + name + "` | ") != std::string::npos);
    }
    CHECK(joined(cells[4].at("source")).starts_with("%%writefile fp8lab_bf16.py\n"));
    CHECK(joined(cells[6].at("source")).starts_with("%%writefile fp8lab_current.py\n"));
    CHECK(joined(cells.back().at("source")).find("module.check()") != std::string::npos);
}

TEST_CASE("run: --notebook of labs with one recipe, and on stdout") {
    CHECK(parsed(fp8lab("run L5 --notebook -").out).at("cells")[4].at("source")[0] ==
          "%%writefile fp8lab_delayed_history_4.py\n");
    CHECK(parsed(fp8lab("run L9 --notebook -").out).at("cells")[6].at("source")[0] ==
          "%%writefile fp8lab_delayed.py\n");
    const auto book = parsed(fp8lab("run L14 --set experiment=swiglu --notebook -").out);
    CHECK(joined(book.at("cells")[4].at("source")).find("%%writefile fp8lab_delayed") == 0);
    CHECK(joined(parsed(fp8lab("run L12 --notebook -").out).at("cells")[4].at("source")).find("nvfp4") !=
          std::string::npos);
}

TEST_CASE("run: notebooks of L6, L11 and L17 have the recipes of what they show") {
    const auto modules = [](const std::string& arguments) {
        const auto book = parsed(fp8lab("run " + arguments + " --notebook -").out);
        static const std::regex kFile("^%%writefile (\\w+)\\.py\n");
        std::string out;
        for (const auto& cell : book.at("cells")) {
            const std::string text = joined(cell.at("source"));
            std::smatch file;
            if (cell.at("cell_type") == "code" && std::regex_search(text, file, kFile))
                out += file.str(1) + " ";
        }
        CHECK(joined(book.at("cells").back().at("source")).find("module.check()") != std::string::npos);
        return out;
    };
    CHECK(modules("L6") == "fp8lab_current fp8lab_rowwise fp8lab_block128_pow2_0 fp8lab_mxfp8 fp8lab_nvfp4 ");
    CHECK(modules("L6 --set element=e5m2 --set pow2=1 --set scheme=mx32 --set rule=floor") ==
          "fp8lab_current_fwd_e5m2_pow2_1 fp8lab_rowwise_fwd_e5m2_pow2_1 fp8lab_block128_fwd_e5m2 "
          "fp8lab_mxfp8_fwd_e5m2_mxrule_floor fp8lab_nvfp4 ");
    CHECK(modules("L11 --set w2=e4m3 --set probe=e4m3-row") == "fp8lab_mxfp8 fp8lab_current fp8lab_rowwise ");
    CHECK(modules("L11 --set experiment=cascade") == "fp8lab_mxfp8 fp8lab_mxfp4 ");
    CHECK(modules("L17 --set scheme=mxfp8") == "fp8lab_mxfp8 ");
}

TEST_CASE("run: a notebook has the reason in place of code that plain PyTorch cannot express") {
    const auto book = parsed(fp8lab("run L8 --set master=none --notebook -").out);
    std::string code, text;
    for (const auto& cell : book.at("cells"))
        (cell.at("cell_type") == "code" ? code : text) += joined(cell.at("source")) + "\n";
    CHECK(
        text.find("Without code: plain PyTorch cannot express delayed:master=none: master=none: it is of the "
                  "optimizer") != std::string::npos);
    CHECK(code.find("%%writefile fp8lab_bf16.py") != std::string::npos);
    CHECK(code.find("%%writefile fp8lab_delayed") == std::string::npos);
}

TEST_CASE("run: --notebook says why there is none, and replaces nothing else") {
    const Scratch scratch;
    const auto fails = [](const std::string& arguments, const std::string& says) {
        CAPTURE(arguments);
        const Finished run = fp8lab("run " + arguments);
        CAPTURE(run.err);
        CHECK(run.code == 2);
        CHECK(run.out.empty());
        CHECK(run.err.find(says) != std::string::npos);
    };
    fails("L1 --notebook -",
          "fp8lab: --notebook: the state of L1 has no recipe to write code for: it shows one code at a time, "
          "and "
          "fp8lab codes prints them all\n");
    for (const char* lab : {"L2", "L3", "L7", "L10"})
        fails(std::string(lab) + " --notebook -", "no recipe to write code for: it ");
    fails("L15 --notebook -", "it shows what travels between ranks, and a notebook is one process\n");
    fails("L17 --set experiment=kv --notebook -", "the state of L17 has no recipe to write code for\n");
    fails("L17 --set scheme=int4-g32 --notebook -", "the state of L17 has no recipe to write code for\n");
    fails("L14 --notebook -", "the state of L14 has no recipe");  // attention alone
    fails("L16 --notebook -", "no recipe to write code for: that of a case is sealed\n");
    fails("L8 --notebook - --words", "--words");
    fails("L8 --notebook - --export " + quoted(scratch / "folder"), "--export");
    spit(scratch / "page.html", "<html></html>");
    fails("L8 --notebook " + quoted(scratch / "page.html"), "a page");
}

TEST_CASE("the notebooks of L6, L11 and L17 run in Jupyter without a GPU, and their codes agree") {
    if (std::system("python3 -c 'import torch, nbconvert, ipykernel' >/dev/null 2>&1") != 0) {
        MESSAGE("skipped: python3 lacks torch, nbconvert or ipykernel here");
        return;
    }
    for (const char* lab : {"L6 --set element=e5m2", "L11 --set probe=e4m3-row", "L17"}) {
        CAPTURE(lab);
        const Scratch scratch;
        CHECK(fp8lab(std::string("run ") + lab + " --notebook " + quoted(scratch / "in.ipynb")).code == 0);
        const std::string command = "cd " + quoted(scratch / "") +
                                    " && CUDA_VISIBLE_DEVICES= python3 -m nbconvert --to notebook --execute "
                                    "--output out.ipynb in.ipynb >err 2>&1";
        REQUIRE_MESSAGE(std::system(command.c_str()) == 0, slurp(scratch / "err"));
        const auto book = parsed(slurp(scratch / "out.ipynb"));
        const std::string said = joined(book.at("cells").back().at("outputs").at(0).at("text"));
        CHECK(said.starts_with("The codes are FP8 Lab's: fp8lab_"));
    }
}
