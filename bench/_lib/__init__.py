"""What several benches share: statistics, text for the page, settings, servers and runs. Not a bench itself."""
