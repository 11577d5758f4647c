"""Study of a sender for real paths: the congestion-window agent on links, traces, outages, changing paths, beside rivals."""
