"""A branch with changes and a draft request for it, on a git remote."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

import httpx2
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tools.builtin import http, pulls
from tools.builtin.fields import Line, Text
from tools.builtin.paths import checked_path, is_of_git, starts_programs
from tools.builtin.words import listed
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Draft,
    LookupResult,
    NotLanded,
    Receipt,
    Tier,
    UndoReceipt,
    UndoResult,
    Unknown,
)
from tools.errors import NoEffect
from tools.gitcli import COMMITTER, GitError, git
from tools.registry import tool

# What stands for a commit that is no longer ours: it is the tip of no branch.
_CHANGED = "0" * 40
_BAD_BRANCH = re.compile(r"\.\.|//|/\.|\.(?:$|/)|\.lock(?:$|/)|/$")


def _branch(name: str) -> str:
    """git's rules for branch names, narrowed to letters, digits, dot, dash, slash, underscore."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]*", name) or _BAD_BRANCH.search(name):
        raise ValueError(f"“{name}” is not a branch name")
    return name


def _path(path: str) -> str:
    if checked_path(path, hidden=True) != path or is_of_git(path):
        raise ValueError(f"“{path}” is not a path inside the repository")
    if starts_programs(path) and not settings.GIT_AUTOMATION:
        raise ValueError(
            f"“{path}” may not be changed: programs run or obey what stands there, without asking "
            "anybody. The operator can allow it"
        )
    return path


def _message(text: str) -> str:
    if found := re.search(r"^\W*(Request-(Id|Branch))\s*:", text, re.IGNORECASE | re.MULTILINE):
        raise ValueError(f"a line may not begin with “{found[1]}:”: that line is ours")
    return text


Branch = Annotated[str, StringConstraints(max_length=100), AfterValidator(_branch)]
FilePath = Annotated[str, StringConstraints(max_length=200), AfterValidator(_path)]
FileText = Annotated[str, StringConstraints(max_length=200_000)]


class OpenDraft(BaseModel):
    """Push a new branch with changed files, and open a draft request to merge it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "branch": "q3-numbers",
                    "base": "main",
                    "title": "Q3 numbers",
                    "files": {"numbers/q3.csv": "month,revenue,costs\nJul,455,330\n"},
                    "message": "Fill in July",
                }
            ]
        }
    )

    branch: Branch
    base: Branch = "main"
    title: Line
    files: Annotated[dict[FilePath, FileText], Field(min_length=1, max_length=50)]
    message: Annotated[Text, AfterValidator(_message)]


# A push goes on without its sender: hooks of the repository run before the branch is there.
HOOKS_WITHIN = 10 * 60.0  # seconds


@tool(
    "git.open_draft",
    tier=Tier.REVERSIBLE,
    args=OpenDraft,
    timeout=20.0,
    horizon=HOOKS_WITHIN,
)
class GitOpenDraft:
    title = gettext_lazy("Open a draft change")
    explains = gettext_lazy(
        "Pushes a new branch and opens a draft request. Both can be taken back."
    )
    undo_note = gettext_lazy(
        "Closes the draft request and deletes the branch, unless somebody added to it since."
    )

    def describe(self, args: OpenDraft) -> str:
        return _("Draft “%(title)s” on branch %(branch)s, to go into %(base)s") % {
            "title": args.title,
            "branch": args.branch,
            "base": args.base,
        }

    @property
    def needs_approval(self) -> Callable[[OpenDraft], str] | None:
        return self._runs_by_itself if settings.GIT_AUTOMATION else None

    def _runs_by_itself(self, args: OpenDraft) -> str:
        """A program may run it as soon as it is pushed: no undo takes that back."""
        paths = [path for path in args.files if starts_programs(path)]
        if not paths:
            return ""
        return _("Programs may run what this changes as soon as it is pushed: %(paths)s.") % {
            "paths": listed(paths)
        }

    def prepare(self, ctx: Context, args: OpenDraft) -> Draft:
        """Commit the change in a private repository of this call; nothing is pushed."""
        clone = _clone_path(ctx)
        try:
            pulls.find(ctx, branch=args.branch)  # asks whether anybody answers there
            commit = _commit_privately(ctx, args, clone)
        except (GitError, subprocess.TimeoutExpired, httpx2.HTTPError) as error:
            shutil.rmtree(clone, ignore_errors=True)
            raise NoEffect(
                "not_prepared",
                _("The change could not be prepared on top of %(base)s.") % {"base": args.base},
                is_passing=http.is_passing(error),
                error=str(error),
            ) from error
        return Draft({"clone": str(clone), "commit": commit})

    def void(self, ctx: Context, draft: Draft) -> None:
        """Remove the private repository."""
        shutil.rmtree(_clone_path(ctx), ignore_errors=True)

    def drafts(self) -> Iterator[str]:
        """The calls that have a private repository."""
        if _clones().is_dir():
            yield from (each.name for each in _clones().iterdir())

    def commit(self, ctx: Context, args: OpenDraft, draft: Draft | None) -> Receipt:
        """Push the branch, then open the draft request.

        Where the branch went out and the request was refused, there IS an effect: the receipt
        has `draft` None, and says so.
        """
        if draft is None or not Path(draft.data["clone"]).is_dir():
            draft = self.prepare(ctx, args)
        commit = _push(ctx, args.branch, draft)
        shutil.rmtree(_clone_path(ctx), ignore_errors=True)
        pull, refusal = pulls.open_draft(
            ctx, branch=args.branch, base=args.base, title=args.title, text=args.message
        )
        return _receipt(args.branch, commit, pull, refusal)

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask for a branch with our commit, and for the draft request with our key."""
        try:
            branch, commit = _find_branch(ctx)
            pull = pulls.find(ctx, branch=branch)
            if pull and not branch:  # it was deleted since, or is somebody else's by now
                branch, commit = pull["head"]["ref"], pull["head"]["sha"]
                commit = _CHANGED if _tip(ctx, branch) else commit
        except (GitError, subprocess.TimeoutExpired, httpx2.HTTPError, ValueError) as error:
            return Unknown(http.why(error))
        return _receipt(branch, commit, pull) if branch else NotLanded()

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Delete the branch if its tip is still our commit, then close the draft request."""
        branch, commit = receipt.data.get("branch"), receipt.data.get("commit")
        number, title = receipt.data.get("draft"), receipt.data.get("title")
        if not branch or not commit:
            return CannotUndo(_("The receipt does not say which branch it was."))
        pull = pulls.get(ctx, number) if number else None
        if pull and pull.get("merged_at"):
            return Changed(
                _("Somebody merged the draft request “%(title)s” since.") % {"title": title}
            )
        gone = _tip(ctx, branch) is None
        if not gone and not _delete_branch(ctx, branch, commit):
            return Changed(_("Somebody added to the branch %(branch)s since.") % {"branch": branch})
        note = (
            _("The branch %(branch)s was already gone.")
            if gone
            else _("The branch %(branch)s was deleted. Whoever fetched it meanwhile still has it.")
        )
        note %= {"branch": branch}
        if number:
            pulls.close(ctx, number)
            closed = _("The draft request “%(title)s” was closed; it stays in the list.")
            note = f"{closed % {'title': title}} {note}"
        return UndoReceipt({"branch": branch, "draft": number}, note)


def _receipt(branch: str, commit: str, pull: pulls.Pull | None, refusal: str = "") -> Receipt:
    if pull is None:
        response = f"Branch {branch} was pushed, but no draft request was opened. {refusal}"
        return Receipt({"branch": branch, "commit": commit, "draft": None}, response.strip())
    number, title = pull["number"], pull["title"]
    return Receipt(
        {
            "branch": branch,
            "commit": commit,
            "draft": number,
            "title": title,
            "url": pull.get("html_url", ""),
        },
        f"Branch {branch} was pushed, and draft request {number} was opened.",
    )


def _clone_path(ctx: Context) -> Path:
    """One folder per call, so that a second `prepare` replaces a first one that died."""
    return _clones() / PurePosixPath(ctx.request_id).name


def _clones() -> Path:
    return Path(settings.DATA_DIR) / "git-drafts"


def _commit_privately(ctx: Context, args: OpenDraft, clone: Path) -> str:
    """A bare repository and plumbing, not a checkout: a link or a filter that somebody put into
    the repository cannot make us write, or run, anything outside of it."""
    shutil.rmtree(clone, ignore_errors=True)
    clone.mkdir(parents=True, mode=0o700)

    def run(*command: str, text: str = "") -> str:
        return git(*command, cwd=clone, text=text, timeout=ctx.timeout).strip()

    run("init", "--quiet", "--bare")
    run("fetch", "--quiet", "--no-tags", "--", settings.GIT_REMOTE, f"refs/heads/{args.base}")
    run("read-tree", "FETCH_HEAD")
    entries = [
        f"100644 {run('hash-object', '-w', '--stdin', text=text)}\t{path}"
        for path, text in args.files.items()
    ]
    # -z: paths as they are, without git's quoting.
    run("update-index", "--add", "-z", "--index-info", text="\0".join(entries) + "\0")
    message = f"{args.message.strip()}\n\nRequest-Id: {ctx.request_id}\n"
    message += f"Request-Branch: {args.branch}\n"
    return run("commit-tree", run("write-tree"), "-p", "FETCH_HEAD", "-F", "-", text=message)


def _push(ctx: Context, branch: str, draft: Draft) -> str:
    """Push our commit as a new branch; returns the commit that stands there.

    Raises NoEffect if the remote refused it: above all, if the branch is somebody else's.
    """
    commit, ref = draft.data["commit"], f"refs/heads/{branch}"
    ctx.sending()
    try:
        git(
            "push",
            "--porcelain",
            f"--force-with-lease={ref}:",  # an empty expectation: the branch must not exist
            "--",
            settings.GIT_REMOTE,
            f"{commit}:{ref}",
            cwd=Path(draft.data["clone"]),
            timeout=ctx.timeout,
        )
    except GitError as error:
        if not _was_rejected(error):
            raise
        found, earlier = _find_branch(ctx)
        if found == branch:
            return earlier  # an earlier attempt of this very call
        shutil.rmtree(_clone_path(ctx), ignore_errors=True)
        raise NoEffect(
            "refused",
            _("The branch %(branch)s exists already, or the repository refused it.")
            % {"branch": branch},
            error=str(error),
        ) from error
    return str(commit)


def _was_rejected(error: GitError) -> bool:
    """Whether the remote answered no, as opposed to not answering: by what git itself reports for
    programs, never by what the remote has to say.
    """
    return bool(re.search(r"^!\t\S*\t\[(remote )?rejected\]", error.out, re.MULTILINE))


def _tip(ctx: Context, branch: str) -> str | None:
    ref = f"refs/heads/{branch}"
    out = git("ls-remote", "--", settings.GIT_REMOTE, ref, timeout=ctx.timeout)
    return out.split()[0] if out else None


def _find_branch(ctx: Context) -> tuple[str, str]:
    """The branch that we pushed, and our commit, be it below later ones or on other branches, too;
    _CHANGED in its place if somebody else has committed it anew. ("", "") if there is none.
    """
    with tempfile.TemporaryDirectory(prefix="lookup-") as folder:

        def run(*command: str) -> str:
            return git(*command, cwd=Path(folder), timeout=ctx.timeout).strip()

        run("init", "--quiet", "--bare")
        run("fetch", "--quiet", "--", settings.GIT_REMOTE, "+refs/heads/*:refs/heads/*")
        trailer = f"^Request-Id: {re.escape(ctx.request_id)}$"
        told = "%H %ce %(trailers:key=Request-Branch,valueonly,separator=%x20)"
        found = run("log", "--branches", "-E", f"--grep={trailer}", f"--format={told}").splitlines()
    if not found:
        return "", ""
    commit, committer, branch = found[-1].split()
    return branch, commit if committer == COMMITTER else _CHANGED


def _delete_branch(ctx: Context, branch: str, commit: str) -> bool:
    """Delete the branch if it still points at our commit; False if it points elsewhere."""
    ref = f"refs/heads/{branch}"
    with tempfile.TemporaryDirectory(prefix="undo-") as folder:
        git("init", "--quiet", "--bare", cwd=Path(folder), timeout=ctx.timeout)
        try:
            git(
                "push",
                "--porcelain",
                f"--force-with-lease={ref}:{commit}",
                "--",
                settings.GIT_REMOTE,
                f":{ref}",
                cwd=Path(folder),
                timeout=ctx.timeout,
            )
        except GitError as error:
            if not _was_rejected(error):
                raise
            return _tip(ctx, branch) is None
    return True
