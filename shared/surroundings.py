"""What a command inherits of the environment of whoever starts it."""

from collections.abc import Mapping

# What git's own hooks export about the repository that they run for (`git rev-parse
# --local-env-vars`): with them a command would commit to that one, not in its worktree. Settings
# that are given in the environment (GIT_CONFIG_COUNT, `git -c`) are about none, and stay.
_ABOUT_A_REPOSITORY = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)


def without_repository(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a command that works in a repository of its own."""
    return {name: value for name, value in environment.items() if name not in _ABOUT_A_REPOSITORY}
