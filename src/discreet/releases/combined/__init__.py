"""Average effects of several sites as one: how they are weighed, what is published, and how it is shown."""
