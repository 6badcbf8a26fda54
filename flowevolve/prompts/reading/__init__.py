"""The readers of replies: lenient in form, strict in meaning. What can be read in two ways is refused, with a reason.

Each form that a reply, or a part of it, can have is read in one place, which all kinds of prompts share. A reader takes
the whole reply, thinking included. It returns what is in the reply, or raises `UnparsableReplyError` with a code and a
sentence that can be sent back to the model.
"""
