"""Names for the arrays that the package passes around; shapes stand where they are used."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.int32]  # indices, where there are many
Bools: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]  # bits, 64 to a word
