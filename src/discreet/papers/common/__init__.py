"""What two or more of the papers share."""
