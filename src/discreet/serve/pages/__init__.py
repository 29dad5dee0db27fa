"""What people see of the service."""
