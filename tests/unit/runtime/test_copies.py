"""Copies answer, fail and end without a trace."""

import os
import time

import pytest

from fairlead.errors import BadRequest
from fairlead.runtime.copies import CopyFailed, ProcessCopy, branch


def test_what_a_copy_changes_is_not_seen() -> None:
    numbers = [1]
    assert branch(lambda: numbers.append(2) or list(numbers)) == [1, 2]
    assert numbers == [1]


def test_what_a_copy_raises_is_raised() -> None:
    def fail() -> None:
        raise BadRequest("no such thing")

    with pytest.raises(BadRequest, match="no such thing"):
        branch(fail)


def test_a_long_answer_arrives_whole() -> None:
    assert len(branch(lambda: "x" * 3_000_000)) == 3_000_000


def test_a_copy_may_branch_again() -> None:
    assert branch(lambda: branch(os.getpid) != os.getpid())


def test_a_question_that_takes_too_long_is_cut_off() -> None:
    copy = ProcessCopy(lambda: time.sleep(60), limit=0.05)
    with pytest.raises(CopyFailed, match="cut off"):
        copy.result()


def test_a_copy_that_dies_says_so() -> None:
    with pytest.raises(CopyFailed, match="without an answer"):
        branch(lambda: os._exit(3))
