"""What a provider offers: offerings, the slots they give, and the default mix."""
