"""What is closed at the end of a ``with`` block."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class Closing:
    """Base class whose ``with`` block ends with ``close``, however it is left."""

    def close(self) -> None:
        """Release what the object holds; it is of no more use."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
