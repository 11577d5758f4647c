#!/usr/bin/env python3
# Family C bottleneck-rate schedules (time_s,mbps; piecewise constant, 100 ms steps, 80 s), fixed seeds
import math
import os
import random

D = os.path.join(os.path.dirname(__file__), "../out/C/traces")
os.makedirs(D, exist_ok=True)


def save(n: str, xs: list[float]) -> None:
    with open(f"{D}/{n}.csv", "w") as f:
        f.write("time_s,mbps\n")
        [f.write(f"{i / 10:.1f},{x:.4f}\n") for i, x in enumerate(xs)]
    print(n, f"mean {sum(xs) / len(xs):.3f} min {min(xs):.3f} max {max(xs):.3f}")


r = random.Random("4g")
x = math.log(12.0)
xs = []
for _i in range(800):  # log random walk, reflected at 2 and 40 Mbps
    x += r.gauss(0, 0.10)
    lo, hi = math.log(2), math.log(40)
    x = 2 * lo - x if x < lo else 2 * hi - x if x > hi else x
    xs.append(math.exp(x))
save("4g", xs)
r = random.Random("5g")
x = math.log(200.0)
xs = []
block = 0
for _i in range(800):  # log random walk 60..400 with abrupt blockages to 20..40 Mbps for 0.3..2 s
    if block == 0 and r.random() < 0.02:
        block = r.randint(3, 20)
        bl = r.uniform(20, 40)
    x += r.gauss(0, 0.08)
    lo, hi = math.log(60), math.log(400)
    x = 2 * lo - x if x < lo else 2 * hi - x if x > hi else x
    if block > 0:
        xs.append(bl)
        block -= 1
    else:
        xs.append(math.exp(x))
save("5g", xs)
save("wired", [50.0] * 800)
