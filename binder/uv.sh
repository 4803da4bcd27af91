#!/bin/sh
# Run the uv of a virtual environment. It is told what pip has been told of indexes and certificates.
#
#   binder/uv.sh ENVIRONMENT pip install ...
set -e
python=$1/bin/python
shift

told=$("$python" -m pip --disable-pip-version-check config list 2>/dev/null || true)
# The value of one of pip's settings, from its files or the environment, on one line.
setting() { printf '%s\n' "$told" | sed -n "s/^\(global\|install\|:env:\)\.$1='\(.*\)'$/\2/p" | tail -n 1 | sed 's/\\n/ /g'; }

# As pip does: of all indexes the best version, and not the first index that has any.
export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX-$(setting index-url)}" UV_INDEX="${UV_INDEX-$(setting extra-index-url)}" \
	UV_FIND_LINKS="${UV_FIND_LINKS-$(setting find-links | tr ' ' ',')}" UV_INDEX_STRATEGY=unsafe-best-match
# uv does not trust the system's certificates: behind a proxy with one of its own, as at many universities, it gets nothing.
certificates=${SSL_CERT_FILE-$(setting cert)}
[ -z "$certificates" ] || export SSL_CERT_FILE="$certificates"
exec "$python" -m uv "$@"
