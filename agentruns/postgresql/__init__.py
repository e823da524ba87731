"""The database backend: Django's, with a pool that notices that Postgres was restarted."""
