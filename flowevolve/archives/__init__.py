"""Archives that algorithms share: views of the pool that parents are selected from."""
