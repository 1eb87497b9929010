# Types of the memory of columns; see `_memory.pyx`.

class Memory:
    def __buffer__(self, flags: int, /) -> memoryview: ...
