// Ranks of one process, driven by one thread and by one thread each.
#include "core/ranks/local.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/formats/codec.h"

using namespace fp8lab;

namespace {

std::vector<std::uint8_t> codes_of(const FormatInfo& format, std::span<const float> values) {
    std::vector<std::uint8_t> bytes(values.size() * static_cast<std::size_t>(storage_bytes(format)));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint32_t code = encode(format, values[i], Rounding::nearest, default_overflow(format));
        std::memcpy(&bytes[i * static_cast<std::size_t>(storage_bytes(format))], &code,
                    static_cast<std::size_t>(storage_bytes(format)));
    }
    return bytes;
}

float value_at(const FormatInfo& format, const std::vector<std::uint8_t>& bytes, std::size_t i) {
    const auto size = static_cast<std::size_t>(storage_bytes(format));
    std::uint32_t code = 0;
    std::memcpy(&code, &bytes[i * size], size);
    return decode(format, code);
}

// work(rank) in a thread of its own.
void on_threads(int ranks, const std::function<void(int)>& work) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r) threads.emplace_back([&work, r] { work(r); });
}

std::string why(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a reduce-scatter gives each rank its block of the sum, by one thread or by one for each") {
    constexpr int kRanks = 4;
    constexpr std::size_t n = 6;
    for (const RankSum& sum : rank_sums()) {
        CAPTURE(sum.id);
        std::vector<std::vector<float>> values(kRanks, std::vector<float>(kRanks * n));
        std::vector<std::vector<std::uint8_t>> in, out, again;
        std::vector<std::span<const float>> views;
        for (std::size_t r = 0; r < kRanks; ++r) {
            Rng(3, r).fill_normal(values[r], 8);
            cast_to_send(sum, values[r], 1, values[r]);
            in.push_back(codes_of(sum.sent(), values[r]));
            out.emplace_back(n * static_cast<std::size_t>(storage_bytes(sum.kept())));
            views.emplace_back(values[r]);
        }
        again = out;
        std::vector<float> wanted(kRanks * n);
        add_ranks(sum, views, wanted);

        const auto local = make_local_collective(kRanks);
        std::vector<RankBuffers> all;
        for (int r = 0; r < kRanks; ++r)
            all.push_back(
                {r, in[static_cast<std::size_t>(r)].data(), out[static_cast<std::size_t>(r)].data()});
        local->reduce_scatter(sum, all, n);
        for (std::size_t r = 0; r < kRanks; ++r)
            for (std::size_t i = 0; i < n; ++i) CHECK(value_at(sum.kept(), out[r], i) == wanted[r * n + i]);

        on_threads(kRanks, [&](int r) {
            const auto at = static_cast<std::size_t>(r);
            const RankBuffers mine{r, in[at].data(), again[at].data()};
            local->reduce_scatter(sum, {&mine, 1}, n);
        });
        CHECK(again == out);
    }
}

TEST_CASE("an all-gather puts the bytes of the ranks one after the other, an all-reduce keeps the largest") {
    const auto local = make_local_collective(3);
    const std::vector<std::string> parts = {"ab", "cd", "ef"};
    std::vector<std::string> whole(3, std::string(6, '?'));
    std::vector<std::vector<float>> maxima = {{1, -5, 0}, {4, -9, NAN}, {-2, -7, 3}};
    on_threads(3, [&](int r) {
        const auto at = static_cast<std::size_t>(r);
        for (int times = 0; times < 50; ++times) {
            const RankBuffers mine{r, parts[at].data(), whole[at].data()};
            local->all_gather({&mine, 1}, 2);
            const RankValues values{r, maxima[at].data()};
            local->all_reduce_max({&values, 1}, 3);
            local->barrier({&r, 1}, std::chrono::seconds(60));
        }
    });
    for (std::size_t r = 0; r < 3; ++r) {
        CHECK(whole[r] == "abcdef");
        CHECK(maxima[r][0] == 4);
        CHECK(maxima[r][1] == -5);
        CHECK(std::isnan(maxima[r][2]));
    }
}

TEST_CASE("a rank that does not come ends all that wait, with its number, and every later call") {
    const auto local = make_local_collective(4, std::chrono::milliseconds(300));
    std::vector<std::string> said(4);
    on_threads(4, [&](int r) {
        if (r == 2) return;
        float value = 0;
        const RankValues mine{r, &value};
        said[static_cast<std::size_t>(r)] = why([&] { local->all_reduce_max({&mine, 1}, 1); });
    });
    for (const int r : {0, 1, 3})
        CHECK(said[static_cast<std::size_t>(r)] == "ranks: rank 2 did not reach an all-reduce within 0.3 s");
    const int late = 2;
    CHECK(why([&] { local->barrier({&late, 1}, std::chrono::seconds(1)); }) == said[0]);
}

TEST_CASE("an abort ends the ranks that wait") {
    const auto local = make_local_collective(2);
    std::string said;
    {
        std::jthread waits([&] {
            const int rank = 0;
            said = why([&] { local->barrier({&rank, 1}, std::chrono::seconds(60)); });
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        local->abort();
    }
    CHECK(said == "ranks: another rank has ended");
}

TEST_CASE("a rank that is named twice or does not exist is refused") {
    const auto local = make_local_collective(2);
    const std::vector<int> twice = {0, 0}, beyond = {2};
    CHECK(why([&] { local->barrier(twice, std::chrono::seconds(1)); }) ==
          "a barrier: rank 0 is named twice or is not in 0..1");
    CHECK(why([&] { make_local_collective(2)->barrier(beyond, std::chrono::seconds(1)); }) ==
          "a barrier: rank 2 is named twice or is not in 0..1");
    CHECK_THROWS_AS(make_local_collective(0), Error);
}
