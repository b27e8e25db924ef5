"""Plays the shared fixtures against any SDK that brings a driver: see ../DRIVER.md."""
