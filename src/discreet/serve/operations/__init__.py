"""What whoever runs the service needs around it: configuration, checks, logs, metrics, and processes that fit."""
