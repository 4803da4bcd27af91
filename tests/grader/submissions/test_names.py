"""Names that a cell defines and uses, in every way that Python and IPython have."""

from __future__ import annotations

import pytest

from starvelab_grader.submissions.reference import defined, loaded


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import x.y as z, a.b", "z a"),
        ("from m import q as r", "r"),
        ("for i, (j, *k) in []: last = 1", "i j k last"),
        ("with a as w, b as (v, u): pass", "w v u"),
        ("print(y := 3)", "y"),
        ("[k := n for n in range(3)]", "k"),
        ("[n for n in range(3)]\nlambda x: 1", ""),
        ("def f(a):\n    local = 1\n    global g\n    g = 1", "f g"),
        ("def f():\n    def inner():\n        global g\n        import g", "f g"),
        ("class C:\n    inner = 1\n    global g\n    g = 1", "C g"),
        ("del d", "d"),
        ("match q:\n    case {'a': a, **b}: pass\n    case str() as e: pass", "a b e"),
        ("match q:\n    case [c, *d] | (c, d): pass", "c d"),
        ("try: pass\nexcept E as error: pass", "error"),
        ("async def co(): pass\nasync with a as b: pass\nawait co()", "co b"),
        ("an: int = 3", "an"),
        ("more += 1", "more"),
        ("if False:\n    rare = 1", "rare"),
        ("a.b = 1\nc[0] = 2", ""),
        ("%matplotlib inline\nimport np", "np"),
        ("files = !ls\n!cd", "files"),
        ("%%time\n%%capture out\nv = 1", "v"),
        ("print(x", ""),
        ("x = '\0'", ""),
        ("(" * 5000, ""),
    ],
)  # fmt: skip
def test_what_a_cell_defines(source, names):
    assert defined([source]) == set(names.split())


def test_what_is_only_imported_can_be_left_out():
    assert defined(["import a\nfrom b import c\nd = 1\nimport e\ne = 2"], imports=False) == {"d", "e"}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("total = sum(double(n) for n in values)", "double values"),
        ("def test():\n    local = 1\n    return double(local) + other\ntest()", "double other"),
        ("class C(Base):\n    at = start", "Base start"),
        ("__builtins__, __name__, print, ValueError", ""),
        ("a.b = c[0]", "a c"),
        ("%%time\ncheck(answer, 42)", "check answer"),
        ("print(x", ""),
    ],
)
def test_what_a_cell_uses(source, names):
    assert loaded(source) == set(names.split())
