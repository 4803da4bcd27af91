"""How many cores this process may really use; `os.cpu_count` counts the host's, also inside a container.

It does not know how busy they are.
"""

from __future__ import annotations

from loky import cpu_count


def usable_cores(*, physical: bool = False) -> int:
    """Cores that the scheduler, the affinity mask and a container's quota leave to this process.

    Parameters
    ----------
    physical : bool
        Count a core with two hardware threads once, where the system tells.
    """
    return cpu_count(only_physical_cores=physical)
