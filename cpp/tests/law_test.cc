// Laws: their tails and means against formulas, and configurations that are none.
#include "check.h"
#include "netbuf/law.h"

using namespace netbuf;

namespace {

LawConfig make(const std::string& kind, double scale, double shape = 0) {
  LawConfig law;
  law.kind = kind;
  law.scale = scale;
  law.shape = shape;
  return law;
}

LawConfig points(std::vector<double> values, std::vector<double> cumulative) {
  LawConfig law;
  law.kind = "points";
  law.values = std::move(values);
  law.cumulative = std::move(cumulative);
  return law;
}

std::string why(const LawConfig& law) {
  try {
    Law::check(law, "law");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(law_tails_are_shares_of_draws_of_x_or_more) {
  CHECK_EQ(Law(make("constant", 5)).tail(5), 1.0);
  CHECK_EQ(Law(make("constant", 5)).tail(5.1), 0.0);
  LawConfig cut = make("exponential", 2);
  CHECK_NEAR(Law(cut).tail(3), std::exp(-1.5), 1e-15);
  cut.low = 1, cut.high = 4;
  CHECK_EQ(Law(cut).tail(1), 1.0);
  CHECK_EQ(Law(cut).tail(4.1), 0.0);
  CHECK_NEAR(Law(cut).tail(2), (std::exp(-1) - std::exp(-2)) / (std::exp(-0.5) - std::exp(-2)), 1e-15);
  const LawConfig steps = points({1, 3, 3, 5}, {0.25, 0.5, 0.75, 1});
  const std::vector<std::pair<double, double>> tails = {{1, 1}, {2, 0.625}, {3, 0.5}, {4, 0.125}, {5, 0}, {6, 0}};
  for (const auto& [x, share] : tails) CHECK_NEAR(Law(steps).tail(x), share, 1e-15);
  LawConfig mixed;
  mixed.kind = "mixed";
  mixed.parts = {make("constant", 5), steps};
  mixed.cumulative = {0.5, 1};
  CHECK_NEAR(Law(mixed).tail(4), 0.5 + 0.5 * 0.125, 1e-15);
}

// E[min(x, most)] of exp(mu + sigma z), by the trapezoidal rule over z.
TEST(law_means_of_wide_lognormals) {
  for (const double sigma : {10.0, 29.0, 37.0, 38.0, 40.0, 100.0}) {
    for (const double most : {1.0, 1000.0}) {
      double sum = 0;
      const double step = 1e-5;
      for (double z = -12; z < 12; z += step) {
        sum += std::min(most, std::exp(sigma * z)) * std::exp(-0.5 * z * z) / std::sqrt(2 * M_PI) * step;
      }
      CHECK_NEAR(Law(make("lognormal", 0, sigma)).mean(most) / sum, 1, 1e-5);
    }
  }
  LawConfig bounded = make("lognormal", 0, 100);
  bounded.low = 1, bounded.high = 1000;
  CHECK(Law(bounded).mean() > 1 && Law(bounded).mean() < 1000);
  CHECK(std::isinf(Law(make("lognormal", 0, 100)).mean()));
}

TEST(law_configurations_that_are_none) {
  CHECK_EQ(why(make("zipf", 1)).substr(0, 16), "law.kind = zipf:");
  CHECK_EQ(why(points({}, {})).substr(0, 16), "law.cumulative =");
  LawConfig stray = points({1, 2}, {0, 1});
  CHECK_EQ(why(stray), "");
  stray.parts = {make("constant", 1)};
  CHECK_EQ(why(stray).substr(0, 11), "law.parts =");
  stray = make("constant", 1);
  stray.values = {1};
  CHECK_EQ(why(stray).substr(0, 12), "law.values =");
}
