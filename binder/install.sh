#!/bin/sh
# Install this checkout with one of its extras into a virtual environment, in the exact versions of constraints.txt.
#
#   binder/install.sh ENVIRONMENT EXTRA
#
# uv fetches many packages at a time and is done in seconds; it is told what pip has been told of indexes. Where uv
# cannot be had, or does not get there, pip installs the same.
set -e
python=$1/bin/python
extra=$2
constraints=binder/constraints.txt

with_pip() { "$python" -m pip install --quiet --disable-pip-version-check --constraint $constraints "$@"; }

told=$("$python" -m pip --disable-pip-version-check config list 2>/dev/null || true)
# The value of one of pip's settings, from its files or the environment, on one line.
setting() { printf '%s\n' "$told" | sed -n "s/^\(global\|install\|:env:\)\.$1='\(.*\)'$/\2/p" | tail -n 1 | sed 's/\\n/ /g'; }

with_uv() {
	with_pip uv || return
	index=$(setting index-url)
	# As pip does: of all indexes the best version, and not the first index that has any.
	UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$index} UV_INDEX=${UV_INDEX:-$(setting extra-index-url)} \
		UV_FIND_LINKS=${UV_FIND_LINKS:-$(setting find-links | tr ' ' ',')} UV_INDEX_STRATEGY=unsafe-best-match \
		"$python" -m uv pip install --quiet --python "$python" --constraint $constraints --editable ".[$extra]"
}

with_uv || {
	echo "uv could not install it; pip does, which takes longer."
	# An old pip takes twice as long, and so does one that compiles what hardly anybody imports.
	with_pip --upgrade pip
	with_pip --no-compile --editable ".[$extra]"
}
# What programs import is compiled once, and not by each of the first that start at the same time.
"$python" -m compileall -q -j 0 -x '/(tests?|torch(gen)?|sympy|mpmath|networkx|mypyc?|pip|setuptools|coverage|_vendored|lexers)/' \
	"$1/lib" || true
