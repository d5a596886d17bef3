// The start of NCCL, with a library that starts as the id says (nccl/fake.cpp).
#include "kernels/ranks/nccl.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/base/error.h"
#include "kernels/ranks/thread_link.h"

using namespace fp8lab;
using namespace std::chrono_literals;

namespace {

cuda::NcclId id_of(char start) {
    cuda::NcclId id{};
    id[0] = start;
    return id;
}

struct TwoRanks {
    explicit TwoRanks(std::chrono::milliseconds most = 10s)
        : links(cuda::make_thread_links(2, most)), timeout(most) {
        setenv("FP8LAB_NCCL_DIR", FP8LAB_FAKE_NCCL, 1);
    }
    cuda::RankPlace place(int rank) const {
        return {rank, 2, nullptr, links[static_cast<std::size_t>(rank)], timeout};
    }
    std::string start_of_rank_0(char start) const {
        try {
            cuda::make_nccl_collective(id_of(start), place(0));
            return "";
        } catch (const Error& error) {
            return error.what();
        }
    }
    std::vector<std::shared_ptr<cuda::HostLink>> links;
    std::chrono::milliseconds timeout;
};

int aborts() {
    void* const library = dlopen(FP8LAB_FAKE_NCCL "/libnccl.so.2", RTLD_NOW);
    REQUIRE(library != nullptr);
    const int count = reinterpret_cast<int (*)()>(dlsym(library, "fake_nccl_aborts"))();
    return count;
}

}  // namespace

TEST_CASE("a rank whose NCCL starts has a collective") {
    const TwoRanks two;
    CHECK(cuda::make_nccl_collective(id_of('s'), two.place(0))->ranks() == 2);
}

TEST_CASE("a start of NCCL that fails says its reason, and what memory the GPU has left") {
    const std::string said = TwoRanks().start_of_rank_0('f');
    CAPTURE(said);
    CHECK(said.starts_with("ncclCommInitRank: NCCL says: unhandled cuda error; "));
    CHECK(said.ends_with(" GB of this GPU's memory are free"));
}

TEST_CASE("a start of NCCL that never ends, ends where another rank has failed, with its reason") {
    const TwoRanks two;
    std::jthread other([&] {
        std::this_thread::sleep_for(50ms);
        two.links[1]->fail("rank 1 (GPU 1): out of memory");
    });
    CHECK(two.start_of_rank_0('n') == "ranks: rank 1 (GPU 1): out of memory");
}

TEST_CASE("a start of NCCL that never ends names the rank that is silent after the timeout") {
    CHECK(TwoRanks(100ms).start_of_rank_0('n') ==
          "ranks: rank 1 did not reach the start of NCCL, for which ranks wait, within 2 s");
}

TEST_CASE("a start of NCCL that never ends, ends after the timeout where the others answer") {
    const TwoRanks two(100ms);
    std::jthread other([&] {
        two.links[1]->all_gather({}, "the start of NCCL, for which ranks wait,", std::chrono::seconds(5));
    });
    CHECK(two.start_of_rank_0('n') == "rank 0: the start of NCCL did not end within 0.1 s");
}

TEST_CASE("what a start of NCCL gives after the timeout is given back") {
    const TwoRanks two(50ms);
    std::jthread other([&] {
        two.links[1]->all_gather({}, "the start of NCCL, for which ranks wait,", std::chrono::seconds(5));
    });
    const int before = aborts();
    CHECK(two.start_of_rank_0('l') == "rank 0: the start of NCCL did not end within 0.05 s");
    for (int i = 0; i < 100 && aborts() == before; ++i) std::this_thread::sleep_for(20ms);
    CHECK(aborts() == before + 1);
}
