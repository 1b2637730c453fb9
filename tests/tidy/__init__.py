"""Style as rules over source text; tests/test_tidy.py applies them to this repository."""
