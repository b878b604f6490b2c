"""139 providers that are wrong in one place, and the proof that the suite finds each of them."""
