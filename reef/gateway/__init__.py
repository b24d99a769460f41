"""The path of every model call: relayed byte for byte, recorded from a copy."""
