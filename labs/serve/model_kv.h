// The part "kv" of L17: a transformer whose keys and values are kept in a scheme, over the size of K.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/figure/figure.h"
#include "core/inference/serve/cache_cost.h"
#include "labs/serve/model_network.h"
#include "labs/table/long.h"

namespace fp8lab::serve {

struct KvSpec {
    NetworkSpec network;
    std::string cache = "one";
    double k_factor = 1;
    bool operator==(const KvSpec&) const = default;
};
struct KvRow {
    const CacheScheme* scheme = nullptr;
    CacheCost cost;
};
// Every scheme at one factor, the chosen one first computed; scale 1 and calibrated over the factor.
struct Kv {
    KvSpec spec;
    std::string data;         // "4096 held-out tokens"
    std::vector<KvRow> rows;  // computed so far, in the order of cache_schemes()
    std::vector<double> factors, one, calibrated, saturated_pct;  // saturated: of K with scale 1

    const KvRow* row(std::string_view scheme) const;  // null: not computed
    const KvRow* own() const { return row(spec.cache); }
    // The smallest of `factors` with which K saturates at scale 1; NaN: none does, or not computed.
    double first_saturated() const;
};
inline constexpr int kLeastFactor = -8, kMostFactor = 8;  // powers of two

// Keeps the model and what it has measured of it.
class KvMaker {
  public:
    Kv operator()(const KvSpec& spec, const table::Told<Kv>& told);

  private:
    struct Point {
        double divergence = 0, saturated_pct = 0;
    };
    using Key = std::pair<std::string, double>;  // scheme, factor
    static Key key(const CacheScheme& scheme, double factor);
    const CacheCost& cost(const CacheScheme& scheme, double factor);
    const Point& point(const CacheScheme& scheme, double factor);

    NetworkSpec of_;
    std::shared_ptr<CacheMeter> meter_;
    std::map<Key, CacheCost> costs_;
    std::map<Key, Point> points_;
};

// model_kv_figures.cpp
std::string kv_title(const Kv& kv);
Figure kv_figure(const Kv& kv);
std::string caches_title(const Kv& kv);
Role role_of(const CacheScheme& scheme);

}  // namespace fp8lab::serve
