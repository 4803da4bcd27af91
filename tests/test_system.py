"""tests/system.sh finds what the tests need of a system, installs it where it may, and lists the rest.

The systems are made here: a folder of small programs is the whole PATH.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

SCRIPT = Path(__file__).parent / "system.sh"
# What any system has; the rest is made.
ORDINARY = ("cat", "grep", "mktemp", "rm", "sed", "sh", "tail", "tr", "env")
COMPLETE = {
    "chromium": "echo Chromium 150",
    "bwrap": "exit 0",
    "setpriv": "exit 0",
    "python3": "exit 0",
    # Looks for fonts, and for libraries.
    "find": "case $* in */fonts*) echo DejaVuSans.ttf;; *seccomp*) echo libseccomp.so.2;; esac",
    "uname": "echo Linux",
    "id": "echo 1000",
}


class System:
    """A system that has some programs, and what came of running the script on it."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "programs"
        self.log = folder / "log"
        self.log.touch()
        self.programs.mkdir()
        for name in ORDINARY:
            (self.programs / name).symlink_to(shutil.which(name))
        for name, line in COMPLETE.items():
            self.has(name, line)

    def has(self, name: str, line: str) -> None:
        """Add a program that is one line of shell."""
        path = self.programs / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def lacks(self, *names: str) -> None:
        """Remove programs."""
        for name in names:
            (self.programs / name).unlink()

    def has_apt(self, **installed: str) -> None:
        """Add an apt-get that installs the programs given, each a line of shell."""
        here = f'"{self.programs}"'
        made = "\n".join(
            f"printf '%s\\n' '#!/bin/sh' '{line}' > {here}/{name}; chmod 755 {here}/{name}"
            for name, line in installed.items()
        )
        self.has("apt-get", f'echo "apt-get $*" >> "$LOG"\ncase "$*" in install*) {made or ":"};; esac')
        self.has("chmod", f'exec {shutil.which("chmod")} "$@"')

    def run(self, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [shutil.which("sh"), SCRIPT], env={"PATH": str(self.programs), "LOG": str(self.log), **variables},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    @property
    def asked_of_apt(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def test_a_system_that_has_everything_is_left_alone(system):
    done = system.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert os.access(SCRIPT, os.X_OK)


def test_root_gets_what_is_missing_by_apt(system):
    system.lacks("chromium", "bwrap")
    system.has("python3.12", "exit 1")  # which makes no virtual environment
    system.has("id", "echo 0")
    installed = {"chromium": "echo Chromium 150"} | dict.fromkeys(("bwrap", "python3.12"), "exit 0")
    system.has_apt(**installed)
    done = system.run(PYTHON="python3.12")
    assert done.returncode == 0, done.stdout
    names = "python3.12 python3.12-venv chromium bubblewrap util-linux libseccomp2"
    assert done.stdout == f"Installing what the tests need of this system: {names}\n"
    assert system.asked_of_apt == [
        "apt-get update --quiet",
        f"apt-get install --yes --quiet --no-install-recommends {names}",
    ]


def test_so_does_whoever_may_use_sudo_without_a_password_and_nobody_else(system):
    system.lacks("bwrap")
    system.has_apt(bwrap="exit 0")
    system.has("sudo", 'echo "$*" >> "$LOG"; exit 1')
    done = system.run()
    assert (done.returncode, system.asked_of_apt) == (1, ["-n true"])
    assert "sudo apt-get install --yes --no-install-recommends bubblewrap" in done.stdout
    system.has("sudo", '[ "$1" = -n ] && exit 0\necho "sudo $*" >> "$LOG"\nexec "$@"')
    assert system.run().returncode == 0
    assert system.asked_of_apt[1] == "sudo apt-get update --quiet"
    system.lacks("bwrap")
    system.has("apt-get", "echo E: Unable to locate package; exit 100")
    said = system.run().stdout
    assert "E: Unable to locate package" in said
    assert "apt could not install what the tests need (its last lines stand above):" in said


def test_anybody_else_gets_one_list_and_one_command(system):
    system.lacks("chromium", "bwrap")
    system.has("find", "exit 0")
    system.has("dnf", 'echo dnf >> "$LOG"')
    done = system.run()
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "The tests need of this system what is not here, and none has run:",
        "  - a browser: Chromium or Chrome on the PATH, or its path in the variable CHROMIUM",
        "  - a font for the browser, such as DejaVu",
        "  - bubblewrap and libseccomp, for the sandbox of the grader",
        "To install it, type:",
        "    sudo dnf install --assumeyes chromium dejavu-sans-fonts bubblewrap util-linux libseccomp",
        'What this system can never run is left out by a switch: make test WITHOUT="browser index sandbox"',
    ]
    assert system.asked_of_apt == [], "nothing is installed"


def test_on_macos_the_sandbox_is_to_be_left_out_by_the_switch(system):
    system.lacks("chromium", "bwrap", "find")
    system.has("uname", "echo Darwin")
    done = system.run()
    assert done.returncode == 1
    assert "bubblewrap, which exists on Linux only: leave its tests out with WITHOUT=sandbox" in done.stdout
    assert "    brew install chromium" in done.stdout
    assert system.run(WITHOUT="sandbox,browser").returncode == 0


def test_what_is_left_out_by_the_switch_of_three_words_is_not_asked_for(system):
    for word, program in {"browser": "chromium", "sandbox": "bwrap"}.items():
        system.lacks(program)
        assert system.run().returncode == 1
        assert system.run(WITHOUT=word).returncode == 0
        system.has(program, COMPLETE[program])
    done = system.run(WITHOUT="browser network")
    assert done.returncode == 2
    assert done.stdout == (
        "WITHOUT takes browser, index and sandbox, got network. For example: make test WITHOUT=browser\n"
    )


def test_a_browser_that_is_only_called_so_is_missing_unless_the_variable_names_another(system):
    """Ubuntu's package is a stub that says how to install the real one."""
    system.has("chromium", "echo requires the chromium snap to be installed >&2; exit 1")
    system.has("chrome-of-mine", "echo Google Chrome 150")
    assert "a browser: Chromium or Chrome" in system.run().stdout
    assert "the variable CHROMIUM" in system.run(CHROMIUM="/nowhere/chrome").stdout
    assert system.run(CHROMIUM=str(system.programs / "chrome-of-mine")).returncode == 0
    system.has("google-chrome", "echo Google Chrome 150")
    assert system.run().returncode == 0


def test_a_bubblewrap_that_starts_nothing_is_missing_and_no_package_is_proposed(system):
    system.has("bwrap", "exit 1")
    system.has("apt-get", "exit 0")
    # Ubuntu 24.04 says why in /proc.
    system.has("cat", "echo 1")
    done = system.run()
    assert "a bubblewrap that works: bwrap is here, and this system does not let it start" in done.stdout
    assert "    sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" in done.stdout
    assert "apt-get install" not in done.stdout
    system.has("cat", "echo 0")
    assert "To install it, type:" not in system.run().stdout


def test_only_a_build_machine_is_told_to_allow_sandboxes(system):
    works = system.programs / "works"
    system.has("bwrap", f"[ -e '{works}' ]")
    system.has("cat", f"[ -e '{works}' ] && echo 0 || echo 1")
    system.has("id", "echo 0")
    system.has("sysctl", f"""echo sysctl >> "$LOG"; : > '{works}'""")
    system.has_apt()
    done = system.run()
    assert done.returncode == 1
    assert done.stdout.splitlines()[1] == "The packages are installed, and this still does not work here:"
    assert "sysctl" not in system.asked_of_apt
    assert system.run(CI="true").returncode == 0
    assert "sysctl" in system.asked_of_apt
