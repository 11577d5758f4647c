"""Study of the thesis on learned queue thresholds: schemes x congestion controls x sizes x loads x seeds."""
