"""Log directories: which files they hold, and reading them in ranges as tables."""
