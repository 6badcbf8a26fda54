"""The readers of replies: lenient in form, strict in meaning. What can be read in two ways is refused, with a reason.

There is one place for each form that a reply, or a part of it, can have; templates use these, and have no patterns of
their own. A reader takes the whole reply, thinking included, and returns what is in it, or raises
`UnparsableReplyError` with a code and with a sentence that can be sent back to the model.
"""
