"""Coverage of effects on compliers and of differences in differences, on generated studies."""
