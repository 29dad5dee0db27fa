"""The questions that estimators ask of the gate, by subject."""
