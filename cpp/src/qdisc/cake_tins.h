// CAKE's tins of DSCPs. Source: the tables of net/sched/sch_cake.c (Linux 6.18).
#pragma once
#include <array>
#include <cstdint>

namespace netbuf {

// The tin of a DSCP: of besteffort, diffserv3, diffserv4, diffserv8.
using TinOf = std::array<uint8_t, 64>;
inline constexpr TinOf kOneTin{};
inline constexpr TinOf kThreeTins = [] {
  TinOf tins{};
  for (const int bulk : {1, 8}) tins[bulk] = 1;                            // LE, CS1
  for (const int voice : {4, 44, 46, 48, 56}) tins[voice] = 2;             // TOS4, VA, EF, CS6, CS7
  return tins;
}();
inline constexpr TinOf kFourTins = [] {
  TinOf tins{};
  for (const int bulk : {1, 8}) tins[bulk] = 1;
  for (const int video : {4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38}) tins[video] = 2;  // CS2, CS3, AF2x, 3x, 4x
  for (const int voice : {32, 40, 44, 46, 48, 56}) tins[voice] = 3;        // CS4 to CS7, VA, EF
  return tins;
}();
inline constexpr TinOf kEightTins = [] {
  TinOf tins{};
  tins.fill(2);
  for (const int lowest : {1}) tins[lowest] = 0;                           // LE
  for (const int bulk : {2, 8, 10, 12, 14}) tins[bulk] = 1;                // TOS1, CS1, AF1x
  for (const int video : {24, 26, 28, 30, 34, 36, 38}) tins[video] = 3;    // CS3, AF3x, AF4x
  for (const int low_latency : {4, 18, 20, 22}) tins[low_latency] = 4;     // TOS4, AF2x
  for (const int fetch : {16}) tins[fetch] = 5;                            // CS2
  for (const int voice : {32, 40, 44, 46}) tins[voice] = 6;                // CS4, CS5, VA, EF
  for (const int control : {48, 56}) tins[control] = 7;                    // CS6, CS7
  return tins;
}();
inline constexpr const TinOf* kTinsOf[] = {&kOneTin, &kThreeTins, &kFourTins, &kEightTins};

}  // namespace netbuf
