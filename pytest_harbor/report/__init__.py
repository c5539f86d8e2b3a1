"""Floor 4: junit, HTML and summaries, made from result files only."""
