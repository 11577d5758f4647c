"""Common parts of all studies: settings, resumable campaigns, tidy results, judging, tables and figures."""
