// fp8lab code: a recipe as a file of Python.
#include <doctest/doctest.h>

#include "process.h"

TEST_CASE("code: prints or writes a file, and says why a library cannot express a recipe") {
    const Scratch scratch;
    const Finished printed = fp8lab("code current --for pytorch");
    CHECK(printed.code == 0);
    CHECK(printed.err.empty());
    CHECK(printed.out.starts_with("\"\"\"current in plain PyTorch: "));
    CHECK(printed.out.find("\nclass Linear(torch.nn.Linear):") != std::string::npos);
    const Finished written = fp8lab("code current --for pytorch -o " + quoted(scratch / "current.py"));
    CHECK(written.code == 0);
    CHECK(written.out.empty());
    CHECK(slurp(scratch / "current.py") == printed.out);
    const auto fails = [](const std::string& arguments, const std::string& says) {
        const Finished run = fp8lab("code " + arguments);
        CHECK(run.code == 2);
        CHECK(run.out.empty());
        CHECK(run.err.find(says) != std::string::npos);
    };
    fails("mxfp4 --for te",
          "fp8lab: --for: Transformer Engine cannot express mxfp4: it has no such recipe\n");
    fails("delayed:wide=first --for pytorch", "wide=first: it is of a whole model");
    fails("mxfp8 --for jax", "fp8lab: --for: unknown library 'jax'; valid: pytorch te torchao torchtitan");
    fails("mxfp5 --for te", "fp8lab: code: unknown recipe 'mxfp5'; valid: ");
    fails("mxfp8", "--for");
    spit(scratch / "page.html", "<html></html>");
    fails("mxfp8 --for te -o " + quoted(scratch / "page.html"), "a page");
}
