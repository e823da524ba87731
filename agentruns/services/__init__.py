"""The services that agentruns stands on: embedded Postgres and Valkey, and the whole stack."""
