// The table that `bench cast` times for a transformer: every case writes all of what it says that it moves.
#include "kernels/bench/transformer_cases.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "tests/kernels/transformer_memory.h"

using namespace fp8lab;
using namespace fp8lab::cuda;
using namespace fp8lab::cuda::test;

TEST_CASE("every case of the transformer's table runs and writes its last matrix, in every turn") {
    NEEDS_GPU();
    std::set<std::string> names;
    for (const TransformerCase& kernel : transformer_cases()) {
        CAPTURE(std::string(kernel.name));
        CHECK(names.emplace(kernel.name).second);
        const Shape s = padded(64, 256);
        const double turn = bytes_per_element(kernel) * s.rows * s.cols;
        const TransformerBench bench(kernel, s, 1.5 * turn, nullptr);
        CHECK(bench.sets() == 2);
        CHECK(bench.bytes() == turn);
        const auto contents = [&] {
            std::vector<std::vector<std::uint8_t>> all;
            for (const Memory& memory : bench.memory) {
                all.emplace_back(memory.bytes());
                check(cudaMemcpy(all.back().data(), memory.get(), memory.bytes(), cudaMemcpyDeviceToHost),
                      "read");
            }
            return all;
        };
        const std::size_t each = kernel.matrices.size();
        for (std::size_t i = each - 1; each > 1 && i < bench.memory.size(); i += each)
            check(cudaMemset(bench.memory[i].get(), 0xA5, bench.memory[i].bytes()), "poison");
        done();
        const auto first = contents();
        bench.enqueue(nullptr);
        done();
        const auto last = contents();
        for (std::size_t i = 0; i < last.size(); ++i) {
            const bool written = i % each == each - 1 && kernel.name.find("loss") == kernel.name.npos &&
                                 kernel.name.find("squares") == kernel.name.npos;
            if (written) CHECK(last[i] != first[i]);
        }
    }
    CHECK(names.size() > 20);
}
