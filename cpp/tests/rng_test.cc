#include "netbuf/rng.h"

#include <vector>

#include "check.h"

using namespace netbuf;

namespace {

// Chi-squared of counts against expected ones, per degree of freedom.
double chi2(const std::vector<double>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  return sum / static_cast<double>(counts.size() - 1);
}

}  // namespace

TEST(first_values_are_those_of_xoshiro256plusplus) {
  // Computed with the reference C code of xoshiro256++ and splitmix64, seed 0.
  Rng rng(0);
  CHECK_EQ(rng.next(), 0x53175d61490b23dfULL);
  CHECK_EQ(rng.next(), 0x61da6f3dc380d507ULL);
}

TEST(uniform_fills_its_interval_evenly) {
  Rng rng(3);
  std::vector<double> bins(100, 0), expected(100, 5000);
  for (int i = 0; i < 500'000; ++i) {
    const double u = rng.uniform();
    CHECK(u >= 0 && u < 1);
    ++bins[static_cast<size_t>(u * 100)];
  }
  CHECK_NEAR(chi2(bins, expected), 1, 0.6);
}

TEST(below_fills_its_range_evenly) {
  Rng rng(4);
  std::vector<double> bins(7, 0), expected(7, 20'000);
  for (int i = 0; i < 140'000; ++i) ++bins.at(rng.below(7));
  CHECK_LT(chi2(bins, expected), 4);
}

TEST(exponential_has_its_mean_and_spread) {
  Rng rng(5);
  double sum = 0, squares = 0;
  constexpr int n = 400'000;
  for (int i = 0; i < n; ++i) {
    const double x = rng.exponential(3);
    CHECK(x >= 0);
    sum += x, squares += x * x;
  }
  CHECK_NEAR(sum / n, 3, 0.03);
  CHECK_NEAR(squares / n, 18, 0.5);
}

TEST(geometric_skipping_is_a_run_of_bernoulli_trials) {
  for (const double p : {0.5, 0.1, 0.01}) {
    Rng rng(6);
    const size_t bins = 40;
    const auto width = static_cast<uint64_t>(std::max(1.0, 0.1 / p));
    std::vector<double> skipping(bins, 0), bernoulli(bins, 0), expected(bins, 0);
    constexpr int n = 100'000;
    const auto bin = [&](uint64_t gap) { return std::min<size_t>(gap / width, bins - 1); };
    for (int i = 0; i < n; ++i) ++skipping[bin(rng.geometric(p))];
    for (int i = 0; i < n; ++i) {
      uint64_t gap = 0;
      while (rng.uniform() >= p) ++gap;
      ++bernoulli[bin(gap)];
    }
    for (size_t i = 0; i < bins; ++i) {
      const double reach = std::pow(1 - p, static_cast<double>(i * width));
      const double beyond = i + 1 < bins ? std::pow(1 - p, static_cast<double>((i + 1) * width)) : 0;
      expected[i] = n * (reach - beyond);
    }
    // Merge the thin tail into one bin.
    while (expected.size() > 2 && expected[expected.size() - 2] < 20) {
      for (auto* v : {&skipping, &bernoulli, &expected}) {
        const double last = v->back();
        v->pop_back();
        v->back() += last;
      }
    }
    CHECK_LT(chi2(skipping, expected), 2.5);
    CHECK_LT(chi2(bernoulli, expected), 2.5);
  }
}

TEST(geometric_at_the_edges) {
  Rng rng(8);
  CHECK_EQ(rng.geometric(1), 0u);
  for (int i = 0; i < 1000; ++i) CHECK_GE(rng.geometric(1e-300), 1'000'000'000u);
}
