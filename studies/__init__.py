"""The papers' own experiments and ours, run again: worlds, schemes, claims, figures. Run from a checkout, in no wheel."""
