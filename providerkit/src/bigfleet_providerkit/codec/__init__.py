"""Names and tags within the limits of a cloud."""
