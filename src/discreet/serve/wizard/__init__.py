"""The form in which a curator registers a data set step by step."""
