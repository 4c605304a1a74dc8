"""What counts as a document, for stages that may change nothing else."""

from ..git.facts import facts
from ..git.repository import Repository

ENDINGS = (".md", ".rst", ".txt", ".adoc", ".mdx", ".org", ".tex", ".csv", ".svg", ".png", ".jpg")
FOLDERS = ("doc/", "docs/", "documentation/")


def is_document(path: str) -> bool:
    """Whether a path is that of a document: by its ending, or since it lies among documents."""
    return path.lower().endswith(ENDINGS) or path.startswith(FOLDERS)


def not_documents(repository: Repository, before: str, after: str) -> list[str]:
    """The paths that differ between two trees and are no documents."""
    changed = facts(repository, before, after).files
    return [each.path for each in changed if not is_document(each.path)]
