"""The watch over git that every test stands under notices what it is there for."""

import pytest

from inbox_orch.orch.git.repository import Repository
from support.runs import Site


def test_git_is_refused_in_a_transaction_and_nowhere_else(site: Site):
    repository = Repository(str(site.repository))
    database = site.scheduler.database

    with pytest.raises(AssertionError, match="rev-parse"), database.transaction():
        repository.commit_of("HEAD")
    with database.snapshot():
        assert repository.commit_of("HEAD")


def test_git_is_refused_in_a_transaction_that_has_joined_another(site: Site):
    repository = Repository(str(site.repository))
    database = site.scheduler.database

    with database.transaction():
        with database.transaction(), pytest.raises(AssertionError):
            repository.commit_of("HEAD")
        with pytest.raises(AssertionError):
            repository.commit_of("HEAD")
