// Which GPUs a training takes: --devices, and the environment variables of processes that are ranks.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "app/cli/train/process.h"
#include "app/cli/train/train_options.h"
#include "core/base/error.h"

using namespace fp8lab;
using namespace fp8lab::cli;

namespace {

using Variables = std::map<std::string, std::string>;

// Sets the variables of ranks while it exists; others are not set.
class Environment {
  public:
    explicit Environment(const Variables& set) {
        for (const char* const name : kNames) {
            ::unsetenv(name);
            if (const auto found = set.find(name); found != set.end())
                ::setenv(name, found->second.c_str(), 1);
        }
    }
    ~Environment() {
        for (const char* const name : kNames) ::unsetenv(name);
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

  private:
    static constexpr const char* kNames[] = {"WORLD_SIZE",  "RANK",        "LOCAL_RANK",
                                             "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"};
};

template <class Call>
std::string refusal(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::usage);
        return error.what();
    }
    return "";
}

const Variables kSecond = {{"WORLD_SIZE", "4"},
                           {"RANK", "3"},
                           {"LOCAL_RANK", "1"},
                           {"MASTER_ADDR", "node0"},
                           {"MASTER_PORT", "29500"}};

}  // namespace

TEST_CASE("a process is a rank as torchrun's variables say") {
    {
        const Environment none(Variables{});
        CHECK_FALSE(process_of_environment());
    }
    {
        const Environment one(Variables{{"WORLD_SIZE", "1"}});
        CHECK_FALSE(process_of_environment());
    }
    const Environment set(kSecond);
    const auto process = process_of_environment();
    REQUIRE(process);
    CHECK(process->ranks == 4);
    CHECK(process->own.rank == 3);
    CHECK(process->own.device == 1);
    CHECK(process->own.address == "node0");
    CHECK(process->own.port == 29500);
    Variables agent = kSecond;
    agent["TORCHELASTIC_USE_AGENT_STORE"] = "True";
    const Environment with_agent(agent);
    CHECK(process_of_environment()->own.port == 29501);
}

TEST_CASE("variables of ranks that are missing or out of range are refused by name") {
    const auto changed = [](const char* name, const char* value) {
        Variables variables = kSecond;
        variables.erase(name);
        if (value) variables[name] = value;
        const Environment set(variables);
        return refusal([] { process_of_environment(); });
    };
    for (const char* const name : {"RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})
        CHECK(changed(name, nullptr) == std::string(name) + ": is not set, and WORLD_SIZE is");
    CHECK(changed("RANK", "4") == "RANK: '4' is not in 0..3");
    CHECK(changed("RANK", "-1") == "RANK: '-1' is not in 0..3");
    CHECK(changed("WORLD_SIZE", "two") == "WORLD_SIZE: 'two' is not in 1..1024");
    CHECK(changed("MASTER_PORT", "65535") == "MASTER_PORT: '65535' is not in 1..65534");
}

TEST_CASE("--devices names GPUs, and --batch is that of each") {
    CHECK(parse_devices("0,2", 0) == std::vector<int>{0, 2});
    CHECK(parse_devices("all", 3) == std::vector<int>{0, 1, 2});
    CHECK(refusal([] { parse_devices("0,0", 4); }) == "--devices: GPU 0 is named twice");
    for (const std::string text : {"", "0,", "a", "-1", "0;1"})
        CHECK(refusal([&] { parse_devices(text, 4); }) ==
              "--devices: '" + text + "' is neither all nor numbers of GPUs like 0,1");
    TrainFlags flags;
    flags.devices = "0,1";
    flags.train.batch = 64;
    const TrainSpec spec = flags.spec();
    CHECK(spec.batch == 128);
    CHECK(spec.ranks.count == 2);
    CHECK(command_line(spec).find("--batch 64 ") != std::string::npos);
    CHECK(command_line(spec).ends_with(" --devices 0,1"));
    CHECK(parse_command_line(command_line(spec), "a checkpoint").batch == 128);
    flags.train.ranks = 2;
    CHECK(refusal([&] { flags.spec(); }) == "--ranks: --devices has a rank for each GPU");
}
