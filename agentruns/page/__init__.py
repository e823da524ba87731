"""What the pages say, as view models built from the ledger. Reads; writes nothing."""
