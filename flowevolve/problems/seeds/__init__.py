"""The programs that evolution starts from, one module each: weak, valid, and in need of nothing but Python."""
