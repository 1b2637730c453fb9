"""Tests, one folder for each package and one file for each module."""
