"""What all studies share: settings, resumable campaigns, tidy results, judging, tables and pictures."""
