#include "core/trainer/checkpoint.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/files/bounded_file.h"
#include "core/files/files.h"
#include "core/tensors/safetensors.h"
#include "core/trainer/cpu_trainer.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

TrainSpec small(const std::string& recipes) {
    TrainOptions options;
    options.recipes = recipes;
    options.layers = std::vector{6, 10, 2};
    options.batch = 16;
    options.steps = 40;
    options.schedule = "cosine";
    return make_train_spec(options);
}

std::vector<StepRecord> run(Trainer& trainer, int steps) {
    trainer.step(steps);
    return trainer.snapshot().arms[0].records;
}

SafeTensors read(const std::filesystem::path& path) {
    return parse_safetensors(read_bytes(path), path.string());
}

}  // namespace

TEST_CASE("a resumed run goes on exactly where the whole run would be") {
    for (const std::string recipe : {"fp32", "bf16", "delayed", "delayed:interval=5", "nvfp4",
                                     "delayed:master=none:round_update=stochastic"}) {
        CAPTURE(recipe);
        const Scratch scratch;
        auto whole = make_cpu_trainer(small(recipe));
        run(*whole, 12);
        whole->save(scratch.path);
        auto resumed = make_cpu_trainer(small(recipe));
        resumed->load(scratch.path);
        CHECK(resumed->steps_done() == 12);
        const auto expected = run(*whole, 8), got = run(*resumed, 8);
        for (std::size_t i = 0; i < 8; ++i) {
            CHECK(got[i].step == expected[i].step);
            CHECK(got[i].loss == expected[i].loss);
            CHECK(got[i].tensors[2].amax == expected[i].tensors[2].amax);
            for (std::size_t t = 0; t < got[i].tensors.size(); ++t) {
                const float scale = expected[i].tensors[t].scale;  // NaN: one a block
                if (!std::isnan(scale)) CHECK(got[i].tensors[t].scale == scale);
            }
        }
    }
}

TEST_CASE("a BF16 run goes on as FP8 and back, from one file or a folder") {
    const Scratch scratch;
    auto bf16 = make_cpu_trainer(small("bf16"));
    run(*bf16, 10);
    bf16->save((scratch.path / "a"));
    const auto bf16_next = run(*bf16, 1);
    auto fp8 = make_cpu_trainer(small("delayed"));
    fp8->load((scratch.path / "a") / "1-bf16.safetensors");
    const auto first = run(*fp8, 2);
    CHECK(first[0].step == 10);
    CHECK(first[0].loss == doctest::Approx(bf16_next[0].loss).epsilon(0.05));
    CHECK(first[0].tensors[0].scale == 1.0F);  // no scaling state in the file: a cold start
    CHECK(first[1].tensors[0].scale == 448.0F / first[0].tensors[0].amax);
    fp8->save((scratch.path / "b"));
    auto back = make_cpu_trainer(small("bf16,current"));
    back->load((scratch.path / "b") / "1-delayed.safetensors");  // one file serves every arm
    CHECK(back->steps_done() == 12);
    CHECK(run(*back, 1)[0].loss < 1.5 * first[1].loss);
}

TEST_CASE("master=none keeps E4M3 codes under a scale with room for 4x the initial amax") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(small("delayed:master=none"));
    run(*trainer, 5);
    trainer->save(scratch.path);
    const SafeTensors file = read((scratch.path / "1-delayed:master=none.safetensors"));
    const float scale = file.tensors.at("storage_scale.w1").values.at(0);
    const FormatInfo& e4m3 = find_format("e4m3");
    for (const float w : file.tensors.at("w1").values) {
        const float code = std::abs(w * scale);
        CHECK(code == doctest::Approx(decode(e4m3, encode(e4m3, code))).epsilon(1e-6));
        CHECK(code <= 130);  // 448 / 4 and some steps of learning
    }
}

TEST_CASE("a checkpoint of another shape, of no program or of too few arms is refused and changes nothing") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(small("bf16"));
    run(*trainer, 3);
    trainer->save(scratch.path);
    TrainSpec wider = small("bf16");
    wider.layers = {6, 12, 2};
    CHECK_THROWS_WITH_AS(make_cpu_trainer(wider)->load(scratch.path),
                         doctest::Contains("does not have the shape"), Error);
    CHECK_THROWS_WITH_AS(make_cpu_trainer(small("bf16,delayed"))->load(scratch.path),
                         doctest::Contains("has 1 checkpoints, the run has 2 arms"), Error);
    CHECK_THROWS_AS(make_cpu_trainer(small("bf16"))->load((scratch.path / "nowhere.safetensors")), Error);
    write_file((scratch.path / "2-foreign.safetensors"),
               to_safetensors({.tensors = {{"w1", {{1}, {1.0F}}}}, .metadata = {}}));
    CHECK_THROWS_WITH_AS(make_cpu_trainer(small("bf16"))->load((scratch.path / "2-foreign.safetensors")),
                         doctest::Contains("no checkpoint of this program"), Error);
}

TEST_CASE("metadata that this version does not know are refused and change nothing") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(small("bf16"));
    run(*trainer, 3);
    trainer->save(scratch.path);
    const SafeTensors good = read(scratch.path / "1-bf16.safetensors");
    CHECK(good.metadata.size() == 4);
    const auto untouched = run(*make_cpu_trainer(small("bf16")), 1);
    const auto refused = [&](const std::function<void(std::map<std::string, std::string>&)>& spoil,
                             const char* why) {
        CAPTURE(std::string(why));
        SafeTensors bad = good;
        spoil(bad.metadata);
        write_file(scratch.path / "bad.safetensors", to_safetensors(bad));
        auto refusing = make_cpu_trainer(small("bf16"));
        CHECK_THROWS_WITH_AS(refusing->load(scratch.path / "bad.safetensors"), doctest::Contains(why), Error);
        CHECK_THROWS_WITH_AS(changes_on_resume(scratch.path / "bad.safetensors", small("bf16")),
                             doctest::Contains(why), Error);
        CHECK(run(*refusing, 1)[0].loss == untouched[0].loss);
    };
    refused([](auto& said) { said.erase("format"); },
            "no checkpoint of this program: the metadata have no 'format'");
    refused([](auto& said) { said["format"] = "fp8lab-checkpoint-2"; },
            "has format 'fp8lab-checkpoint-2'; this version reads fp8lab-checkpoint-1");
    refused([](auto& said) { said["layout"] = "transposed"; },
            "metadata 'layout' is not known here; known: format, step, recipe, command_line");
    refused([](auto& said) { said.erase("step"); }, "the metadata have no 'step'");
    refused([](auto& said) { said["step"] = "-1"; }, "the metadata have no 'step'");
    for (const std::string seed : {"one", "-1", "1e3", "99999999999999999999"})
        refused([&](auto& said) { said["command_line"] = "--seed " + seed + " --steps 3"; },
                ("has the seed '" + seed + "'").c_str());
}

TEST_CASE("a recipe that a GPU of an earlier version saved without its formats is not said") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(small("delayed"));
    run(*trainer, 3);
    trainer->save(scratch.path);
    SafeTensors file = read(scratch.path / "1-delayed.safetensors");
    for (const char* text : {"delayed:fwd=:bwd=", "delayed:history=4:fwd=:bwd=:pow2=1"}) {
        file.metadata["recipe"] = text;
        write_file(scratch.path / "old.safetensors", to_safetensors(file));
        CHECK(changes_on_resume(scratch.path / "old.safetensors", small("delayed")).empty());
        auto resumed = make_cpu_trainer(small("delayed"));
        resumed->load(scratch.path / "old.safetensors");
        CHECK(resumed->steps_done() == 3);
    }
}

TEST_CASE("a resumed run says of each arm what is another than before") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(small("bf16,current"));
    trainer->step(2);
    trainer->save(scratch.path);
    CHECK(changes_on_resume(scratch.path, small("bf16,current")).empty());
    TrainSpec other = small("bf16,delayed");
    other.seed = 7;
    const auto changes = changes_on_resume(scratch.path, other);
    REQUIRE(changes.size() == 2);
    CHECK(changes[0].starts_with("arm 2 was trained as current"));
    CHECK(changes[1] == "the seed was 1 and is 7 now: other batches");
    SafeTensors second = read(scratch.path / "2-current.safetensors");
    second.metadata["command_line"] = "--seed 5 --steps 40";
    write_file(scratch.path / "2-current.safetensors", to_safetensors(second));
    const auto mixed = changes_on_resume(scratch.path, small("bf16,current"));
    REQUIRE(mixed.size() == 1);
    CHECK(mixed[0] == "in arm 2 the seed was 5 and is 1 now: other batches");
}

TEST_CASE("a checkpoint is written although the command line in it is no UTF-8") {
    const Scratch scratch;
    SafeTensors file{.tensors = {{"w1", {{1}, {1.0F}}}}, .metadata = {{"command_line", "--task npy:\xFF,y"}}};
    write_file(scratch.path / "a.safetensors", to_safetensors(file));
    CHECK(read(scratch.path / "a.safetensors").metadata.at("command_line") == "--task npy:\uFFFD,y");
}

TEST_CASE("scaling state that cannot be is refused and changes nothing") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(small("delayed"));
    run(*trainer, 3);
    trainer->save(scratch.path);
    const SafeTensors good = read(scratch.path / "1-delayed.safetensors");
    const auto untouched = run(*make_cpu_trainer(small("delayed")), 1);
    for (const auto& [name, value] :
         {std::pair{"scale.x1", NAN}, std::pair{"scale.dy2", -1.0F}, std::pair{"scale_age.w1", INFINITY}}) {
        CAPTURE(std::string(name));
        SafeTensors bad = good;
        bad.tensors.at(name).values[0] = value;
        write_file(scratch.path / "bad.safetensors", to_safetensors(bad));
        auto refusing = make_cpu_trainer(small("delayed"));
        CHECK_THROWS_WITH_AS(refusing->load(scratch.path / "bad.safetensors"), doctest::Contains(name),
                             Error);
        CHECK(run(*refusing, 1)[0].loss == untouched[0].loss);
    }
}

TEST_CASE("a checkpoint whose weights became codes is refused: it has no scales") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(small("bf16"));
    trainer->save(scratch.path);
    std::string bytes = read_bounded(scratch.path / "1-bf16.safetensors", kLargestDocument);
    // b2 has two values of four bytes; as F8_E4M3 of eight codes.
    const std::size_t name = bytes.find("\"b2\":"), dtype = bytes.find("\"F32\",\"shape\":[2]", name);
    REQUIRE(dtype != bytes.npos);
    const std::size_t end = bytes.find('}', name);
    std::string entry = bytes.substr(name, end - name);
    entry.replace(entry.find("\"F32\""), 5, "\"F8_E4M3\"");
    entry.replace(entry.find("[2]"), 3, "[8]");
    bytes.replace(name, end - name, entry);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    length += 4;
    std::memcpy(bytes.data(), &length, sizeof length);
    write_file(scratch.path / "1-bf16.safetensors", std::as_bytes(std::span(bytes)));
    CHECK_THROWS_WITH_AS(trainer->load(scratch.path / "1-bf16.safetensors"),
                         doctest::Contains("tensor 'b2' holds F8_E4M3 codes; a checkpoint has values"),
                         Error);
}

TEST_CASE("no truncated or damaged checkpoint does more than throw an error") {
    const Scratch scratch;
    auto trainer = make_cpu_trainer(small("delayed"));
    run(*trainer, 2);
    trainer->save(scratch.path);
    const auto good = read_bytes((scratch.path / "1-delayed.safetensors"));
    for (std::size_t size = 0; size < good.size(); size += 7)
        CHECK_THROWS_AS(parse_safetensors(std::span(good).first(size), "file"), Error);
    Rng rng(1);
    for (int round = 0; round < 500; ++round) {
        auto bytes = good;
        for (int k = 0; k < 3; ++k)
            bytes[rng.below(static_cast<std::uint32_t>(bytes.size()) / 2)] =
                static_cast<std::byte>(rng.below(256));
        try {
            parse_safetensors(bytes, "file");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
        }
    }
}
