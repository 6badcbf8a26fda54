"""How requests reach a server: OpenAI's SDK, plain aiohttp, streams, and a router over several endpoints."""
