// The verb manual: contents, pages as text, one HTML file.
#include <doctest/doctest.h>

#include "process.h"

TEST_CASE("manual prints its contents, pages as text, and names what is no page") {
    const Finished contents = fp8lab("manual");
    CHECK(contents.code == 0);
    const auto row = [](std::string name, const char* title) {
        name.resize(std::string("lectures/low-precision-90").size(), ' ');  // the longest
        return "\n" + name + "  " + title + "\n";
    };
    CHECK(contents.out.starts_with(row("tutorial/hour", "Three labs in an hour").substr(1)));
    for (const std::string& line : {row("how-to/memory", "Plan memory and time"), row("why/nvfp4", "NVFP4"),
                                    row("lectures/is-fp8-for-us", "Is FP8 for us?"),
                                    row("lists/terms", "Glossary"), row("verbs/train", "train")})
        CHECK_MESSAGE(contents.out.find(line) != std::string::npos, line);
    const Finished page = fp8lab("manual how-to/memory verbs/plan");
    CHECK(page.code == 0);
    CHECK(page.out.starts_with("# Plan memory and time\n"));
    CHECK(page.out.find("\n# plan\n") != std::string::npos);
    CHECK(page.out.find("--tokens-per-second") != std::string::npos);
    CHECK(page.out.find("](") == std::string::npos);
    CHECK(page.out.find("```") == std::string::npos);
    const Finished none = fp8lab("manual how-to/nothing");
    CHECK(none.code == 2);
    CHECK(none.err.find("unknown page 'how-to/nothing'") != std::string::npos);
}

TEST_CASE("a page as text says where its links lead, what a command needs, and has no sign of Markdown") {
    const std::string doctor = fp8lab("manual how-to/doctor").out;
    CHECK(doctor.find("(tutorial/pytorch)") != std::string::npos);
    CHECK(doctor.find("(lists/modes)") != std::string::npos);
    CHECK(doctor.find("\nTerms, which `fp8lab list terms TERM` explains: ") != std::string::npos);
    CHECK(doctor.find("amax-history") != std::string::npos);
    CHECK(doctor.find("\n    fp8lab watch run.csv\n") != std::string::npos);
    CHECK(fp8lab("manual how-to/export").out.find("\nNeeds PyTorch.\n    python3 mxfp8.py\n") !=
          std::string::npos);
    for (const char* id : {"lists/terms", "lists/recipes", "lists/options", "lists/exercises"}) {
        CAPTURE(id);
        const Finished list = fp8lab(std::string("manual ") + id);
        CHECK(list.code == 0);
        CHECK(list.out.find('\\') == std::string::npos);
        CHECK(list.out.find("Terms, which") == std::string::npos);  // the glossary has its terms itself
    }
    const std::string words = fp8lab("list terms spike").out;
    CHECK(words.starts_with("spike"));
}

TEST_CASE("manual writes one HTML file of all or of some pages, and refuses a place that cannot be written") {
    const Scratch scratch;
    CHECK(fp8lab("manual -o " + (scratch / "manual.html")).code == 0);
    const std::string html = slurp(scratch / "manual.html");
    CHECK(html.starts_with("<!DOCTYPE html>"));
    CHECK(html.ends_with("</html>\n"));
    CHECK(html == fp8lab("manual -o -").out);
    CHECK(fp8lab("manual lectures/is-fp8-for-us how-to/memory -o " + (scratch / "page.html")).code == 0);
    const std::string pages = slurp(scratch / "page.html");
    CHECK(pages.find("<title>FP8 Lab: Is FP8 for us?</title>") != std::string::npos);
    CHECK(pages.find("Plan memory and time</h2>") != std::string::npos);
    CHECK(pages.find("<a href") == std::string::npos);  // what a link leads to is not in this file
    CHECK(pages.size() < html.size() / 2);
    CHECK(fp8lab("manual how-to/nothing -o " + (scratch / "none.html")).code == 2);
    CHECK_FALSE(std::filesystem::exists(scratch / "none.html"));
    CHECK(fp8lab("manual -o " + (scratch / "nowhere/manual.html")).code == 1);
}
