// Stands in for the reference's random.hh, of which nothing is used here.
#pragma once
struct RandGen {
  double uniform(double low, double) { return low; }
  double exponential(double mean) { return mean; }
};
