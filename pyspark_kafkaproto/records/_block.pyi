# Types of blocks of batches; see `_block.pyx`.

folds: bool

class Source: ...
