"""Tools of Acme, for agentruns."""
