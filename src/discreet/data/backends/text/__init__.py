"""Text files, and workbooks that are read as if they were text: how a field becomes a value, one record at a time."""
