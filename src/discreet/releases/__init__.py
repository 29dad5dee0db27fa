"""What is published: averages, functions and segments, as files, words, plots and pages."""
