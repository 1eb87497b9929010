"""Makes `bench/`, which is no part of the package, importable as its own scripts see it."""

from __future__ import annotations

import sys
from pathlib import Path

_BENCH = Path(__file__).resolve().parents[3] / "bench"

if str(_BENCH) not in sys.path:
    sys.path.insert(0, str(_BENCH))
