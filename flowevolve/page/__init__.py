"""What shows a run: its page, live with ``flowevolve watch`` or as one file; figures; and a trace for Perfetto."""
