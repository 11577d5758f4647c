"""The papers' own experiments, run again: grids of simulations, their tidy results, their figures."""
