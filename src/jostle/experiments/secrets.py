"""Files that hold passwords and keys, by their names: they are never copied, nor shown in a recorded difference."""

from __future__ import annotations

from fnmatch import fnmatchcase

PATTERNS = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "id_rsa*",
    "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".pypirc", ".npmrc", ".git-credentials",
    ".htpasswd", "credentials", "client_secret*.json", "service-account*.json", "kaggle.json", ".secrets", ".ssh", ".aws",
    ".gnupg",
    *(f"{name}.{kind}" for name in ("secret", "secrets", "credentials") for kind in ("json", "yaml", "yml", "toml", "ini")),
)  # fmt: skip
EXAMPLES = (".example", ".sample", ".template", ".dist")  # `.env.example` is there to be read


def named(name: str) -> bool:
    """Whether a file or folder of this name holds secrets."""
    low = name.lower()
    return not low.endswith(EXAMPLES) and any(fnmatchcase(low, pattern) for pattern in PATTERNS)


def pathspecs() -> list[str]:
    """All but these, for git."""
    return [":/", *(f":(top,exclude,icase,glob)**/{name}{below}" for name in PATTERNS for below in ("", "/**"))]
