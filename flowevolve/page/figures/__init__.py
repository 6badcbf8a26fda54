"""Figures of a run for papers and notebooks, drawn with matplotlib from the tables that the page is drawn from."""
