"""What runs programs written for other projects in the stream."""
