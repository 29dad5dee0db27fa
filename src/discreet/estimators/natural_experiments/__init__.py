"""Effects where treatment is not as good as random: by an instrument, or by what was before."""
