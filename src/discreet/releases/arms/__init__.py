"""What is published of several arms, and the page about it."""
