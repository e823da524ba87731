"""The protocol as a small model, explored exhaustively: `make check-model`."""
