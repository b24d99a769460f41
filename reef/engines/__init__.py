"""What answers inference: an upstream address, or the small model that reef brings along."""
