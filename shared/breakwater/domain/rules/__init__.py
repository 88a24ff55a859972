"""What a provider's answers mean: one file of rows per provider, and the reading of bodies beneath them."""
