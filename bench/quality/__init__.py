"""Streaming GEPA beside synchronous GEPA on the virtual clock: how good, how soon, for how many tokens.

Everything is simulated: profile ``qwen3-8b-h100``, world ``rules`` in settings from easy to adversarial, every seed
with rows of its own. Synchronous GEPA is our lockstep of width 1, the published loop: the gepa package itself can't run
on a virtual clock. ``--tune`` runs the settings that the stream was chosen from, on seeds that are not reported, and
``--others`` runs what users could take instead of the default, and ``--without`` the default with each of its
parts switched off.
"""
