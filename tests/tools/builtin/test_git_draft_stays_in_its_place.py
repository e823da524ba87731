"""What a model may write into a draft's arguments, and what the repository may hold."""

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.tools.builtin.calls import act, arguments, lookup, prepare, tool, undo
from tests.tools.conftest import NewContext, RunningWorld
from tools.contract import Changed, NotLanded, Receipt, UndoReceipt
from tools.errors import BadArguments, NoEffect
from tools.gitcli import git

NAME = "git.open_draft"


@pytest.mark.parametrize(
    "branch",
    ["--upload-pack=evil", "-b", "a..b", "a/.git", "a.lock", "a//b", "a/", "a b", "a~1", "é", ""],
)
def test_a_branch_name_that_git_could_misread_is_refused(branch: str) -> None:
    for field in ("branch", "base"):
        with pytest.raises(BadArguments):
            arguments(NAME, **{field: branch})


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "../x", "a/../../x", "a/./x", "a/", "", "a\\b", "a\nb", "a//b"),
        *(".git/config", "a/.GIT/x", ".git /config", ".git./config", ".git. . /x", "GIT~1/config"),
        *("git~2", "GITMOD~1", ".g\u200cit/config", "\ufeff.git/x", ".git:$DATA", "．ｇｉｔ/x"),
        *("a\u202ebc.txt", "a\u200bb.txt", "a\u2028b", "a\x85b", "a\u00a0b", "a ", " a"),
        *("a\u3164b", "a\u2800b", "a\ufe0fb", ".g\u115fit/config", ".git\u034f/config"),
        *("cafe\u0301.txt", "x" * 201),
    ],
)
def test_a_path_outside_the_repository_or_with_signs_unseen_is_refused(path: str) -> None:
    with pytest.raises(BadArguments):
        arguments(NAME, files={path: "x"})


AUTOMATION = [
    *(".github/workflows/x.yml", ".GitHub/Workflows/x.yml", "sub/.github/workflows/x.yml"),
    *(".github/actions/a/action.yml", ".github/CODEOWNERS", "CODEOWNERS", ".gitlab-ci.yml"),
    *(".gitlab-ci.yaml", "ci/deploy.gitlab-ci.yml", ".gitlab/ci/x.yml", ".gitlab-ci/x.yml"),
    *(".gitmodules", ".gitattributes", "docs/.gitattributes", "Jenkinsfile", "Jenkinsfile.release"),
    *("jenkinsfile", ".circleci/config.yml", "azure-pipelines.yml", ".azure-pipelines/x.yml"),
    *(".drone.yml", ".drone.star", ".travis.yml", ".woodpecker.yml", ".woodpecker/x.yaml"),
    *(".buildkite/pipeline.yml", "bitbucket-pipelines.yml", ".forgejo/workflows/x.yml"),
    *(".gitea/workflows/x.yml", ".husky/pre-commit", ".githooks/pre-push", ".vscode/tasks.json"),
    *(".devcontainer/devcontainer.json", ".devcontainer.json", "appveyor.yml", ".cirrus.yml"),
    *("cloudbuild.yaml", "buildspec.yml", ".pre-commit-config.yaml", "lefthook.yml", ".envrc"),
    *("．github/workflows/x.yml", ".gｉthub/x.yml", ".GITHUB/x"),
    *(".github", ".teamcity/settings.kts", ".tekton/x.yaml", ".zuul.yaml", ".builds/x.yml"),
]


@pytest.mark.parametrize("path", AUTOMATION)
def test_what_a_program_would_run_without_asking_is_refused_in_words(path: str) -> None:
    """A10: a branch that is pushed with it runs with the secrets of the repository."""
    with pytest.raises(BadArguments, match="programs run or obey what stands there"):
        arguments(NAME, files={"readme.md": "x", path: "x"})


@pytest.mark.parametrize("path", AUTOMATION)
def test_an_operator_may_allow_it(path: str, settings: Settings) -> None:
    settings.GIT_AUTOMATION = True
    assert arguments(NAME, files={path: "x"})


@pytest.mark.parametrize(
    "path",
    [
        *(".gitignore", "github/workflows/x.yml", "docs/jenkins.md", "src/.eslintrc", "x.yml"),
        *("notes on .github.md", "pipelines/azure.md", "git~", "a~b.txt", "naïve/季度.txt"),
    ],
)
def test_a_file_like_any_other_may_be_written(path: str) -> None:
    assert arguments(NAME, files={path: "x"})


@pytest.mark.parametrize("line", ["request-id: req_other", "<!-- Request-Id: req_other -->"])
def test_a_message_cannot_claim_another_calls_key(line: str) -> None:
    with pytest.raises(BadArguments):
        arguments(NAME, message=f"Fine\n\n{line}")


def test_the_draft_has_the_files_on_top_of_its_base(
    world: RunningWorld, new_context: NewContext
) -> None:
    receipt = act(NAME, new_context())
    repo, commit = world.folder / "repo.git", receipt.data["commit"]
    shown = git("show", f"{commit}:numbers/q3.csv", cwd=repo, timeout=10)
    assert shown == "month,revenue\nJul,455\n"
    assert git("show", f"{commit}:neu/zäh len.txt", cwd=repo, timeout=10) == "ü\n"
    parent = git("rev-parse", f"{commit}^", cwd=repo, timeout=10)
    assert parent == git("rev-parse", "release/q3", cwd=repo, timeout=10)


def test_somebody_elses_branch_is_never_pushed_over(
    world: RunningWorld, new_context: NewContext
) -> None:
    repo = world.folder / "repo.git"
    before = git("rev-parse", "release/q4", cwd=repo, timeout=10)
    ctx = new_context()
    with pytest.raises(NoEffect) as caught:
        act(NAME, ctx, branch="release/q4")
    assert caught.value.code == "refused"
    assert git("rev-parse", "release/q4", cwd=repo, timeout=10) == before
    assert world.effects(ctx) == []


def test_a_base_that_is_not_there_fails_before_anything_is_pushed(
    world: RunningWorld, new_context: NewContext
) -> None:
    with pytest.raises(NoEffect) as caught:
        prepare(NAME, new_context(), arguments(NAME, base="release/q9"))
    assert caught.value.code == "not_prepared"


def test_void_and_commit_leave_no_private_repository_behind(
    world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    ctx, args = new_context(), arguments(NAME)
    draft = prepare(NAME, ctx, args)
    assert draft is not None
    assert Path(draft.data["clone"]).is_dir()
    tool(NAME).impl.void(ctx, draft)  # type: ignore[attr-defined]
    act(NAME, new_context())
    assert list(Path(settings.DATA_DIR, "git-drafts").iterdir()) == []


def test_a_link_in_the_repository_cannot_lead_the_files_outside(
    world: RunningWorld, new_context: NewContext, tmp_path: Path
) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    repo = str(world.folder / "repo.git")
    git("clone", "--quiet", "--", repo, str(work), timeout=20)
    (work / "linked").symlink_to(outside)
    git("checkout", "--quiet", "-b", "with-link", cwd=work, timeout=20)
    git("add", "linked", cwd=work, timeout=20)
    git("commit", "--quiet", "-m", "A link", cwd=work, timeout=20)
    git("push", "--quiet", "origin", "with-link", cwd=work, timeout=20)
    receipt = act(NAME, new_context(), base="with-link", files={"linked/file": "x"})
    assert list(outside.iterdir()) == []
    inside = f"{receipt.data['commit']}:linked/file"
    assert git("show", inside, cwd=world.folder / "repo.git", timeout=10) == "x"


def test_lookup_finds_a_push_whose_draft_request_never_went_out(
    world: RunningWorld, new_context: NewContext, tmp_path: Path
) -> None:
    """The worker died between the two; a colleague has added to the branch meanwhile."""
    ctx, args = new_context(), arguments(NAME)
    draft = prepare(NAME, ctx, args)
    assert draft is not None
    repo, branch = str(world.folder / "repo.git"), args.branch  # type: ignore[attr-defined]
    push = f"{draft.data['commit']}:refs/heads/{branch}"
    git("push", "--quiet", repo, push, cwd=Path(draft.data["clone"]), timeout=20)
    work = tmp_path / "colleague"
    git("clone", "--quiet", "--branch", branch, "--", repo, str(work), timeout=20)
    git("commit", "--quiet", "--allow-empty", "-m", "My part", cwd=work, timeout=20)
    git("push", "--quiet", "origin", branch, cwd=work, timeout=20)

    found = lookup(NAME, ctx)
    assert isinstance(found, Receipt)
    assert found.data == {"branch": branch, "commit": draft.data["commit"], "draft": None}
    assert lookup(NAME, new_context()) == NotLanded()


def test_a_refused_draft_request_after_the_push_is_reported_as_half_landed(
    world: RunningWorld, new_context: NewContext
) -> None:
    """The branch is out there, so this is not `failed`; and the receipt says what is missing."""
    branch = act(NAME, new_context()).data["branch"]
    repo = str(world.folder / "repo.git")
    git("push", "--quiet", repo, f":refs/heads/{branch}", cwd=Path(repo), timeout=20)
    ctx = new_context()
    receipt = act(NAME, ctx, branch=branch)
    assert receipt.data["draft"] is None
    assert "no draft request was opened" in receipt.response
    assert f"A pull request already exists for demo:{branch}" in receipt.response
    assert len(world.effects(ctx)) == 1


def test_undo_of_a_branch_whose_draft_was_refused_deletes_the_branch(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act("git.open_draft", ctx)
    partial = Receipt(receipt.data | {"draft": None})
    assert isinstance(undo("git.open_draft", ctx, partial), UndoReceipt)
    branch = f"refs/heads/{receipt.data['branch']}"
    assert git("ls-remote", "--", str(world.folder / "repo.git"), branch, timeout=10) == ""


def test_a_look_up_names_our_branch_wherever_its_commit_went(
    world: RunningWorld, new_context: NewContext
) -> None:
    """Somebody put our commit on a branch of their own, and deleted ours: that one is theirs."""
    ctx, repo = new_context(), world.folder / "repo.git"
    receipt = act(NAME, ctx)
    branch, commit = receipt.data["branch"], receipt.data["commit"]
    theirs = f"a-{branch}"
    git("branch", theirs, commit, cwd=repo, timeout=10)
    git("branch", "-D", branch, cwd=repo, timeout=10)

    found = lookup(NAME, ctx)

    assert isinstance(found, Receipt)
    assert (found.data["branch"], found.data["commit"]) == (branch, commit)
    assert isinstance(undo(NAME, ctx, found), UndoReceipt)
    assert git("rev-parse", theirs, cwd=repo, timeout=10).strip() == commit


def test_undo_leaves_alone_what_somebody_has_committed_anew(
    world: RunningWorld, new_context: NewContext, tmp_path: Path
) -> None:
    ctx, repo, work = new_context(), str(world.folder / "repo.git"), tmp_path / "colleague"
    branch = act(NAME, ctx).data["branch"]
    git("clone", "--quiet", "--branch", branch, "--", repo, str(work), timeout=20)
    bo = {"GIT_COMMITTER_EMAIL": "bo@team.example"}
    git("commit", "--quiet", "--amend", "--no-edit", cwd=work, timeout=20, env=bo)
    git("push", "--quiet", "--force", "origin", branch, cwd=work, timeout=20)

    found = lookup(NAME, ctx)

    assert isinstance(found, Receipt)
    assert found.data["branch"] == branch
    assert isinstance(undo(NAME, ctx, found), Changed)
    assert git("branch", "--list", branch, cwd=Path(repo), timeout=10).strip() == branch
