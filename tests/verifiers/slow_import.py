"""A verifier whose import takes longer than the deadline of a sample."""

import time

time.sleep(1.5)


def check(sample):
    return True
