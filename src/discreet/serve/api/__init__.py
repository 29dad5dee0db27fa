"""What programs may ask of the service."""
