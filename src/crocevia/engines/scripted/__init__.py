"""A model that says what it is told: for tests, demonstrations and apps under construction."""
