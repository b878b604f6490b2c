"""What the golden checks of the contract share: the frozen table, and bytes made from it alone."""
