// The verb manual: contents, pages as text, one HTML file.
#include <doctest/doctest.h>

#include "process.h"

TEST_CASE("manual prints its contents, pages as text, and names what is no page") {
    const Finished contents = fp8lab("manual");
    CHECK(contents.code == 0);
    for (const char* line : {"tutorial/hour       Three labs in an hour\n",
                             "\nhow-to/memory       Plan memory and time\n", "\nwhy/nvfp4           NVFP4\n",
                             "\nlists/terms         Glossary\n", "\nverbs/train         train\n"})
        CHECK_MESSAGE(contents.out.find(line) != std::string::npos, line);
    const Finished page = fp8lab("manual how-to/memory verbs/plan");
    CHECK(page.code == 0);
    CHECK(page.out.starts_with("# Plan memory and time\n"));
    CHECK(page.out.find("\n# plan\n") != std::string::npos);
    CHECK(page.out.find("--tokens-per-second") != std::string::npos);
    CHECK(page.out.find("](") == std::string::npos);
    const Finished none = fp8lab("manual how-to/nothing");
    CHECK(none.code == 2);
    CHECK(none.err.find("unknown page 'how-to/nothing'") != std::string::npos);
}

TEST_CASE("manual writes one HTML file, and refuses a page beside it and a place that cannot be written") {
    const Scratch scratch;
    CHECK(fp8lab("manual -o " + (scratch / "manual.html")).code == 0);
    const std::string html = slurp(scratch / "manual.html");
    CHECK(html.starts_with("<!DOCTYPE html>"));
    CHECK(html.ends_with("</html>\n"));
    CHECK(html == fp8lab("manual -o -").out);
    CHECK(fp8lab("manual how-to/memory -o " + (scratch / "page.html")).code == 2);
    CHECK_FALSE(std::filesystem::exists(scratch / "page.html"));
    CHECK(fp8lab("manual -o " + (scratch / "nowhere/manual.html")).code == 1);
}
