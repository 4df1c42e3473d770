"""What tests use in place of the real seams."""
