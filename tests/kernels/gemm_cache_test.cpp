// The file of chosen algorithms: kept, and never in the way.
#include "kernels/gemm/gemm_cache.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "core/files/files.h"
#include "tests/kernels/gpu.h"
#include "tests/scratch.h"

using namespace fp8lab;

namespace {

constexpr cuda::GemmSpec kSpec{cuda::Product::nt,
                               64,
                               128,
                               256,
                               cuda::Element::e4m3,
                               cuda::Element::e4m3,
                               cuda::Element::bf16,
                               cuda::ScaleMode::tensor,
                               cuda::ScaleMode::tensor,
                               true};

cublasLtMatmulAlgo_t algo_of(unsigned char first) {
    cublasLtMatmulAlgo_t algo{};
    unsigned char bytes[sizeof algo];
    for (std::size_t i = 0; i < sizeof algo; ++i) bytes[i] = static_cast<unsigned char>(first + 3 * i);
    std::memcpy(&algo, bytes, sizeof algo);
    return algo;
}
bool same(const std::optional<cublasLtMatmulAlgo_t>& a, const cublasLtMatmulAlgo_t& b) {
    return a && std::memcmp(&*a, &b, sizeof b) == 0;
}

// XDG_CACHE_HOME for the length of a test.
class CacheFolder {
  public:
    explicit CacheFolder(const std::filesystem::path& path) {
        if (const char* now = std::getenv("XDG_CACHE_HOME")) before_ = now;
        setenv("XDG_CACHE_HOME", path.c_str(), 1);
    }
    ~CacheFolder() {
        if (before_)
            setenv("XDG_CACHE_HOME", before_->c_str(), 1);
        else
            unsetenv("XDG_CACHE_HOME");
    }

  private:
    std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("an algorithm comes back from the file, for its own spec only") {
    NEEDS_GPU();
    const Scratch scratch;
    const CacheFolder folder(scratch.path);
    cuda::GemmCache().put(kSpec, algo_of(7));
    cuda::GemmCache next;
    CHECK(same(next.find(kSpec), algo_of(7)));
    cuda::GemmSpec other = kSpec;
    other.fast_accum = false;
    CHECK(!next.find(other));
    next.put(kSpec, algo_of(9));
    CHECK(same(cuda::GemmCache().find(kSpec), algo_of(9)));
}

TEST_CASE("a damaged cache is as good as none, and is written anew") {
    NEEDS_GPU();
    for (const char* damage : {"", "{", "[1, 2]", "{\"a\": 3}", "\xFF\xFE"}) {
        CAPTURE(damage);
        const Scratch scratch;
        const CacheFolder folder(scratch.path);
        const auto file = scratch.path / "fp8lab" / "gemm-plans.json";
        std::filesystem::create_directories(file.parent_path());
        write_file(file, std::string_view(damage));
        cuda::GemmCache cache;
        CHECK(!cache.find(kSpec));
        cache.put(kSpec, algo_of(1));
        CHECK(same(cuda::GemmCache().find(kSpec), algo_of(1)));
    }
}

TEST_CASE("damaged digits of one algorithm are as good as none") {
    NEEDS_GPU();
    const Scratch scratch;
    const CacheFolder folder(scratch.path);
    cuda::GemmCache().put(kSpec, algo_of(7));
    const auto file = scratch.path / "fp8lab" / "gemm-plans.json";
    const std::string whole = read_text(file);
    const std::size_t digits = whole.find("\": \"") + 4;
    for (const auto& [from, to] : {std::pair{2, "zz"}, std::pair{2, ""}}) {
        std::string text = whole;
        text.replace(digits, static_cast<std::size_t>(from), to);
        write_file(file, text);
        CHECK(!cuda::GemmCache().find(kSpec));
    }
}

TEST_CASE("a cache that cannot be written keeps what it knows for the process") {
    NEEDS_GPU();
    const Scratch scratch;
    write_file(scratch.path / "file", std::string_view("in the way"));
    const CacheFolder folder(scratch.path / "file");
    cuda::GemmCache cache;
    cache.put(kSpec, algo_of(5));
    CHECK(same(cache.find(kSpec), algo_of(5)));
}

TEST_CASE("a plan whose cached algorithm is no algorithm finds another and replaces it") {
    NEEDS_GPU();
    const cuda::Lt lt;
    const cuda::Stream stream;
    const cublasLtMatmulAlgo_t none = algo_of(0xA5);
    cuda::gemm_cache().put(kSpec, none);
    const cuda::GemmPlan plan(lt, kSpec, stream.get());
    CHECK(cuda::gemm_cache().find(kSpec));
    CHECK(!same(cuda::gemm_cache().find(kSpec), none));
}
