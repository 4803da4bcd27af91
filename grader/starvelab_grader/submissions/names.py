"""Which names a cell defines and which it uses, as Python's own compiler sees them."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator
from functools import lru_cache

from IPython.core.inputtransformer2 import TransformerManager

NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


def defined(sources: Iterable[str], *, imports: bool = True) -> set[str]:
    r"""Return the names that cells define at their top level, in whatever way Python has, also by imports.

    Examples
    --------
    >>> sorted(defined(["%matplotlib inline\nimport numpy as np\nfor n in range(3):\n    last = n"]))
    ['last', 'n', 'np']
    """
    return {
        symbol.get_name()
        for source in sources
        for scope in _scopes(source)
        for symbol in scope.get_symbols()
        if symbol.is_assigned() or (imports and symbol.is_imported())
        # A function, or a walrus in a comprehension, can define a name of the module.
        if scope.get_type() == "module" or symbol.is_declared_global()
    }


def loaded(source: str) -> set[str]:
    """Return the names that a cell uses and does not define, without Python's own, and such as ``__file__``.

    Examples
    --------
    >>> sorted(loaded("total = sum(double(n) for n in values)"))
    ['double', 'values']
    """
    used = {
        symbol.get_name()
        for scope in _scopes(source)
        for symbol in scope.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() or scope.get_type() == "module")
    }
    used -= defined([source]) | set(dir(builtins))
    return {name for name in used if not name.startswith("__")}


@lru_cache(maxsize=1000)
def _scopes(source: str) -> tuple[symtable.SymbolTable, ...]:
    """The scope of a cell and all within it; none of what is no Python."""
    scopes = list(_top(source))
    for scope in scopes:  # the list grows meanwhile
        scopes += scope.get_children()
    return tuple(scopes)


def _top(source: str) -> Iterator[symtable.SymbolTable]:
    magic, _, body = source.lstrip().partition("\n")
    # What a cell magic such as %%time runs is a cell too, and may begin with another one.
    if magic.startswith("%%"):
        yield from _top(body)
        return
    try:
        # IPython's own reading of lines such as `%matplotlib inline` and `files = !ls`.
        tree = _Generators().visit(ast.parse(TransformerManager().transform_cell(source)))
        yield symtable.symtable(ast.unparse(ast.fix_missing_locations(tree)), "cell", "exec")
    except NOT_PYTHON:
        return


class _Generators(ast.NodeTransformer):
    """Comprehensions as generators: from Python 3.12 on, the names of others seem to be the module's own."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.AST:
        return self.generic_visit(ast.GeneratorExp(node.elt, node.generators))

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        return self.visit_ListComp(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        both = ast.Tuple([node.key, node.value], ast.Load())
        return self.generic_visit(ast.GeneratorExp(both, node.generators))
