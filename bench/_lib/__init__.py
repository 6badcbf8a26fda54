"""What several benches share: statistics, text for the page, settings, servers and runs. No bench by itself."""
