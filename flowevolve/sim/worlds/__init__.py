"""The text side of the simulated server: small worlds in which artifacts really matter."""
