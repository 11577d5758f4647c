"""Controllers on suites: from a name to a row of results and its place on the leaderboard.

A name becomes a controller (`controllers`), which plays a suite's worlds (`play`); its metrics are kept as rows (`rows`), which
are scored (`scoring`) and ranked (`standings`). Beside this way stand the reports of a run (`reports`, `field_reports`), the
upkeep of kept results (`results`), submitted agents (`submission`), and the pages (`page`).
"""
