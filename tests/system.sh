#!/bin/sh
# Checks what `make test` needs of the system beyond Python's packages, and installs what is missing where it may.
#
# As root, or with a sudo that asks for no password, it installs by apt. Elsewhere it ends with one list and one
# command to type, before anything is installed and before any test has run.
#
#   WITHOUT="browser index sandbox"   leave these tests out, on a system that cannot run them
#   CHROMIUM=/path/to/chrome             the browser to use
#   PYTHON=python3.12                    the Python that the virtual environment is made with
set -u

PYTHON=${PYTHON:-python3}
WITHOUT=$(printf '%s' "${WITHOUT:-}" | tr ',' ' ')

have() { command -v "$1" >/dev/null 2>&1; }
left_out() { case " $WITHOUT " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
found_below() { find "$@" 2>/dev/null | grep -q .; }

for each in $WITHOUT; do
    case $each in
        browser | index | sandbox) ;;
        *)
            echo "WITHOUT takes browser, index and sandbox, got $each. For example: make test WITHOUT=browser"
            exit 2
            ;;
    esac
done

# --- what is there ------------------------------------------------------------------------------------------

has_browser() {
    # Ubuntu's chromium is a stub that only says how to install the real one, so the program itself is asked.
    for each in ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome; do
        if "$each" --version 2>/dev/null | grep -qi chrom; then return 0; fi
        if [ -n "${CHROMIUM:-}" ]; then return 1; fi
    done
    return 1
}

has_fonts() {
    [ "$system" = Darwin ] || found_below /usr/share/fonts /usr/local/share/fonts -name '*.[ot]tf'
}

has_filter() { found_below /usr/lib /usr/lib64 -maxdepth 2 -name 'libseccomp.so.2*'; }

has_sandbox() {
    have bwrap && has_filter && { [ "$(id -u)" -ne 0 ] || have setpriv; } &&
        bwrap --unshare-pid --unshare-net --unshare-ipc --unshare-uts --ro-bind / / --proc /proc --dev /dev true \
            2>/dev/null
}

has_venv() { "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; }

# What is missing, one word each.
missing() {
    has_venv || echo venv
    left_out browser || has_browser || echo browser
    left_out browser || has_fonts || echo fonts
    left_out sandbox || has_sandbox || echo sandbox
}

# --- what it is called here -----------------------------------------------------------------------------------

describe() {
    case $1 in
        venv) echo "a Python of version 3.11 or newer that makes virtual environments (here: $PYTHON)" ;;
        browser) echo "a browser: Chromium or Chrome on the PATH, or its path in the variable CHROMIUM" ;;
        fonts) echo "a font for the browser, such as DejaVu" ;;
        sandbox)
            if [ "$system" != Linux ]; then
                echo "bubblewrap, which exists on Linux only: leave its tests out with WITHOUT=sandbox"
            elif have bwrap && has_filter; then
                echo "a bubblewrap that works: bwrap is here, and this system does not let it start a sandbox"
            else
                echo "bubblewrap and libseccomp, for the sandbox of the grader"
            fi
            ;;
    esac
}

package() { # of $1, by the package manager $2
    case $2:$1 in
        apt:venv) case $PYTHON in python3.*) echo "$PYTHON $PYTHON-venv" ;; *) echo python3 python3-venv ;; esac ;;
        dnf:venv) case $PYTHON in python3.*) echo "$PYTHON" ;; *) echo python3 ;; esac ;;
        brew:venv) echo python@3.13 ;;
        apt:browser | dnf:browser) echo chromium ;;
        brew:browser) echo chromium ;;
        apt:fonts) echo fonts-dejavu-core ;;
        dnf:fonts) echo dejavu-sans-fonts ;;
        apt:sandbox) echo bubblewrap util-linux libseccomp2 ;;
        dnf:sandbox) echo bubblewrap util-linux libseccomp ;;
    esac
}

packages() { # of all of $1, by the package manager $2, on one line
    for each in $1; do package "$each" "$2"; done | tr '\n' ' ' | sed 's/ $//'
}

RESTRICTED=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
UNRESTRICT="sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"

is_restricted() { [ "$(cat "$RESTRICTED" 2>/dev/null)" = 1 ]; }

command_to_type() {
    wanted=$1
    # A bubblewrap that the system stops is helped by no package; on Ubuntu a setting does.
    if have bwrap && have setpriv && has_filter && case " $wanted " in *" sandbox "*) ;; *) false ;; esac; then
        if is_restricted; then echo "    sudo $UNRESTRICT"; fi
        wanted=$(echo "$wanted" | tr ' ' '\n' | grep -v '^sandbox$' | tr '\n' ' ')
    fi
    for manager in apt dnf brew; do
        case $manager in
            apt) have apt-get || continue; install="sudo apt-get install --yes --no-install-recommends" ;;
            dnf) have dnf || continue; install="sudo dnf install --assumeyes" ;;
            brew) [ "$system" = Darwin ] || continue; install="brew install" ;;
        esac
        names=$(packages "$wanted" "$manager")
        [ -z "$names" ] || echo "    $install $names"
        return
    done
}

give_up() { # $1: what is missing, $2: the first line
    echo "$2"
    for each in $1; do echo "  - $(describe "$each")"; done
    typed=$(command_to_type "$(echo "$1" | tr '\n' ' ' | sed 's/ $//')")
    [ -z "$typed" ] || printf 'To install it, type:\n%s\n' "$typed"
    echo "What this system can never run is left out by a switch: make test WITHOUT=\"browser index sandbox\""
    exit 1
}

# --- check, install, check again ------------------------------------------------------------------------------

system=$(uname -s)
wanted=$(missing)
[ -n "$wanted" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if have sudo && sudo -n true 2>/dev/null; then as_root=sudo; else as_root=none; fi
fi
if [ "$as_root" = none ] || ! have apt-get; then
    give_up "$wanted" "The tests need of this system what is not here, and none has run:"
fi

names=$(packages "$(echo "$wanted" | tr '\n' ' ')" apt)
echo "Installing what the tests need of this system: $names"
log=$(mktemp)
# One word each: a list of packages, and a prefix that may be empty.
# shellcheck disable=SC2086
if ! { $as_root apt-get update --quiet &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends $names; } \
    >"$log" 2>&1; then
    tail -n 20 "$log"
    rm -f "$log"
    give_up "$wanted" "apt could not install what the tests need (its last lines stand above):"
fi
rm -f "$log"

# Ubuntu 24.04 keeps ordinary users from what a sandbox is made of. A build machine may be told otherwise until it
# is switched off; on anybody's own machine that is for its owner to decide.
if [ -n "${CI:-}" ] && is_restricted && ! left_out sandbox && ! has_sandbox; then
    echo "Until this machine is switched off: $UNRESTRICT"
    # shellcheck disable=SC2086
    $as_root $UNRESTRICT >/dev/null
fi

still=$(missing)
[ -z "$still" ] || give_up "$still" "The packages are installed, and this still does not work here:"
