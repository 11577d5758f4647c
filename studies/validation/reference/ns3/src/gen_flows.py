#!/usr/bin/env python3
# Flow lists for Family B -> out/B/flows/flows_<variant>_<load>_<seed>.csv
# variant thesis: rate = load*500 flows/s overall; sane10/sane100: rate = load*B/mean_size
import bisect
import os
import random

CDF = [
    (0, 0),
    (10000, 0.15),
    (20000, 0.20),
    (30000, 0.30),
    (50000, 0.40),
    (80000, 0.53),
    (200000, 0.60),
    (1000000, 0.70),
    (2000000, 0.80),
    (5000000, 0.90),
    (10000000, 0.97),
    (30000000, 1.0),
]
P = [p for _, p in CDF]
S = [s for s, _ in CDF]
mean = sum((P[i + 1] - P[i]) * (S[i] + S[i + 1]) / 2 for i in range(len(P) - 1))


def draw(r: random.Random) -> int:
    u = r.random()
    i = min(bisect.bisect_right(P, u), len(P) - 1)
    return max(1, round(S[i - 1] + (S[i] - S[i - 1]) * (u - P[i - 1]) / (P[i] - P[i - 1])))


D = os.path.join(os.path.dirname(__file__), "../out/B/flows")
os.makedirs(D, exist_ok=True)
print("mean flow bytes", mean)
for variant, B, T in (("thesis", None, 60), ("sane10", 10e6, 600), ("sane100", 100e6, 60)):
    for load in (0.2, 0.4, 0.6, 0.8):
        for seed in (1, 2, 3):
            r = random.Random(f"{variant}-{load}-{seed}")
            rate = load * 500 if B is None else load * B / (8 * mean)
            t = 0.0
            n = 0
            tot = 0
            with open(f"{D}/flows_{variant}_{load}_{seed}.csv", "w") as f:
                f.write("flow_id,start_s,sender,size_bytes,priority\n")
                while True:
                    t += r.expovariate(rate)
                    if t >= T:
                        break
                    s = draw(r)
                    f.write(f"{n},{t:.9f},{r.randrange(10)},{s},{0 if s < 2000 * 1448 else 1}\n")
                    n += 1
                    tot += s
            if seed == 1:
                print(variant, load, f"rate/s {rate:.3f}", "n", n, "offered Mbps %.2f" % (tot * 8 / T / 1e6))
