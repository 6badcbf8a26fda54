"""Mutation tests: small changes of meaning are made in the product, and the tests nearest to each have to notice it."""
