"""Throughput on a real GPU: synchronous gepa, its PxN mode, and ours in lockstep and as a stream, on one server.

The bench starts the server, lets each method work for the same time in random order, and samples the GPU meanwhile.
With ``--model`` the model is a trained one and says what it says, as long as it likes. Without, it has the shape of
Qwen3-8B and random weights, made on the spot, and every answer has the length and the words that the simulated world
draws for the request: the same for all methods. What comes after ``--`` are flags of the server.
"""
