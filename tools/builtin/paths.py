"""Paths that a model writes, below a folder or in a repository: one rule for every tool."""

import re
import unicodedata
from fnmatch import fnmatchcase

from tools.texts import is_unseen

LONGEST_NAME = 200  # bytes: what file systems hold, and room for a suffix
_SHORT_NAME = re.compile(r"[^.]{1,6}~\d+(\..{0,3})?")  # how Windows calls another file, too

# What a repository's server, or the programs of those who fetch it, run or obey by themselves:
# settings of CI and deployment, of hooks, editors and dependencies. Folders and files at any depth,
# the files as patterns, in small letters.
_FOLDERS = {
    *(".github", ".gitlab", ".gitlab-ci", ".forgejo", ".gitea", ".gogs", ".bitbucket", ".builds"),
    *(".azure-pipelines", ".azuredevops", ".buildkite", ".circleci", ".cirrus", ".drone"),
    *(".harness", ".semaphore", ".teamcity", ".tekton", ".woodpecker", ".zuul.d", "zuul.d"),
    *(".husky", ".githooks", ".git-hooks", ".lefthook", ".devcontainer", ".vscode", ".idea"),
}
_FILES = (
    *(".gitmodules", ".gitattributes", ".gitconfig", ".lfsconfig", "codeowners", ".envrc"),
    *("*.gitlab-ci.y*ml", "jenkinsfile*", "*.jenkinsfile", "azure-pipelines*.y*ml"),
    *("bitbucket-pipelines.y*ml", ".buildkite*", ".cirrus.*", ".drone.*", ".travis.y*ml"),
    *(".woodpecker*", "appveyor*.y*ml", ".appveyor*.y*ml", ".build.y*ml", "buildspec*.y*ml"),
    *("cloudbuild*.y*ml", "cloudbuild*.json", "codefresh*.y*ml", "earthfile", "wercker.y*ml"),
    *(".gocd*", "*.gocd.y*ml", "screwdriver.y*ml", ".zuul.y*ml", "zuul.y*ml"),
    *("netlify.toml", "vercel.json", "fly.toml", "render.y*ml", ".readthedocs.y*ml"),
    *(".pre-commit-*.y*ml", "lefthook*", ".lefthook*", ".devcontainer.json", "*.code-workspace"),
    *(".gitpod*", "renovate.json*", ".renovaterc*", "dependabot.y*ml"),
)


def checked_path(path: str, *, hidden: bool) -> str:
    """A path below a folder, “a/b.txt”, in one spelling (NFC): its names can be seen, and are the
    same file to every file system. `hidden`: whether they may begin with a dot. Raises ValueError.
    """
    path = unicodedata.normalize("NFC", path)
    if not all(_is_name(part, hidden=hidden) for part in path.split("/")):
        begin = "a slash" if hidden else "a dot or a slash"
        raise ValueError(
            f"“{path}” is not a file name: write it like “folder/name.txt”, without “..”, without "
            f"{begin} at the beginning, and without signs that cannot be seen"
        )
    return path


def _is_name(part: str, *, hidden: bool) -> bool:
    return (
        part.isprintable()
        and not any(map(is_unseen, part))
        and part == part.strip(" ")
        and (hidden or not part.startswith("."))
        and not part.endswith(".")
        and not set(part) & set('\\:*?"<>|')
        and not _SHORT_NAME.fullmatch(part)
        and 0 < len(part.encode(errors="replace")) <= LONGEST_NAME
    )


def is_of_git(path: str) -> bool:
    """Whether it is git's own: `.git`, however it is spelt."""
    return ".git" in _plain(path)


def starts_programs(path: str) -> bool:
    """Whether what stands there is run, or obeyed, by programs that nobody here starts: a CI runs
    it as soon as it is pushed, with the secrets of the repository.
    """
    parts = _plain(path)
    return not _FOLDERS.isdisjoint(parts) or any(
        fnmatchcase(parts[-1], pattern) for pattern in _FILES
    )


def _plain(path: str) -> list[str]:
    """Its names as the most forgiving file system tells them apart."""
    same = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
    seen = "".join(sign for sign in same if not is_unseen(sign)).replace("\\", "/")
    return [part.rstrip(" .").lstrip(" ") for part in seen.split("/")]
