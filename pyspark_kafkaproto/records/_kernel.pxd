"""What the extensions of other rooms see of the native codec."""


cdef class Source:
    """Where more of a block comes from without a step in Python."""

    cdef size_t reach(self, size_t have) noexcept
