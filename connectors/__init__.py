"""The outside world. Each connector is imported by its own name, as in connectors.kafka."""
