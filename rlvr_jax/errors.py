"""Errors whose message is for the user, told apart from bugs."""


class UserError(ValueError):
    """Settings, data or a model that cannot be used; the message says what to change.

    Commands print the message alone. Any other ValueError is a bug of ours, and keeps
    its traceback.
    """
