"""Which ignored paths are what tools put down in passing, and say nothing of the work. Pure."""

_NAMES = frozenset(
    {
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".cache"),
        *("node_modules", ".venv", "venv", ".tox", ".nox", ".eggs", "target", "build", "dist"),
        *(".coverage", "coverage", "coverage.xml", "htmlcov", ".nyc_output", "junit.xml"),
        *(".gradle", ".next", ".nuxt", ".parcel-cache", ".turbo", ".eslintcache", ".tsbuildinfo"),
        *(".idea", ".vscode", ".DS_Store", ".direnv"),
    }
)
_ENDINGS = (
    *(".pyc", ".pyo", ".egg-info", ".dist-info", ".o", ".a", ".so", ".obj", ".class", ".d"),
    *(".swp", "~", ".log", ".tmp", ".tsbuildinfo"),
)


def is_cache(path: str) -> bool:
    """Whether a path, of a folder with a slash at its end, is that of a cache, of something that
    was built, or of an editor."""
    parts = path.rstrip("/").split("/")
    if any(part in _NAMES or part.endswith((".egg-info", ".dist-info")) for part in parts):
        return True
    return parts[-1].endswith(_ENDINGS) or parts[-1].startswith(".coverage.")
