"""Memory that crosses the edge between Python and C: borrowed input, and arenas that Arrow buffers are cut from."""

from cython cimport freelist
from cpython.buffer cimport (
    PyBUF_SIMPLE,
    PyBUF_WRITE,
    PyBuffer_FillInfo,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.memoryview cimport PyMemoryView_FromMemory
from errno import EIO

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from kraftlog._native.c_memory cimport (
    kr_block_bytes,
    kr_block_close,
    kr_block_open,
    kr_block_share,
    kr_cache_size,
    kr_own_pool,
)


WINDOW_BYTES = 1 << 20  # of a local file: it stays in the second-level cache
CACHE_BYTES = kr_cache_size()  # of the second level
LONG_BATCH = 4 << 10  # bytes that cost as much as another read


@freelist(8)
cdef class Input:
    """What is read: a contiguous buffer of any object, or, where a caller can do with it, a file of which a window is
    in memory.

    A file is an object with ``size``, ``read(start, end)`` and ``read_into(memoryview, start)``. One with ``fileno`` is
    read without the GIL. ``window_bytes`` says how much is read at once, and ``long_batch`` from how many bytes of a
    batch on a reader of headers passes over it by a read of its own. The object is held as long as this one lives.
    """

    def __cinit__(self, source not None, bint may_be_file=False):
        if not may_be_file or not hasattr(source, "read_into"):
            PyObject_GetBuffer(source, &self.lent.view, PyBUF_SIMPLE)
            self.data = <const uint8_t *>self.lent.view.buf
            self.size = self.lent.view.len
            return
        self.file = source
        self.size = source.size
        self.window.file = source.fileno() if hasattr(source, "fileno") else -1
        self.window.grow = grow_window
        self.window.fill = fill_window
        self.window.owner = <void *>self

    def __dealloc__(self):
        PyBuffer_Release(&self.lent.view)  # does nothing when there is nothing to release

    cdef kr_input make(self, int64_t stop, bint salvage=False) except *:
        """The input for the walkers in native/c; what lies behind ``stop`` is read only when it is needed. With ``salvage``
        batches are searched for behind damage."""
        cdef kr_input made = kr_input_make(self.data, self.size)
        self.salvage = kr_salvage_make()
        if salvage:
            made.salvage = &self.salvage
        if self.file is None:
            return made
        made.until = 0
        made.spare = KR_WINDOW_SPARE
        made.move = kr_window_move
        made.owner = &self.window
        made.window_bytes = getattr(self.file, "window_bytes", WINDOW_BYTES)
        made.long_batch = getattr(self.file, "long_batch", LONG_BATCH)
        made.ahead = made.window_bytes
        made.stop = min(stop, self.size)
        return made

    cdef object failure(self):
        """Why the file cannot be read: what its own ``read`` raises for the same bytes."""
        if self.error is not None:
            return self.error
        try:
            self.file.read(self.window.failed_at, self.window.failed_end)
        except OSError as error:
            return error
        what = f"bytes {self.window.failed_at} to {self.window.failed_end} were truncated and written again meanwhile"
        return OSError(EIO, what, str(self.file.path))


cdef uint8_t *grow_window(kr_window *w, int64_t capacity, const uint8_t *kept, int64_t size) noexcept nogil:
    with gil:
        return take_staging(w, capacity, kept, size)


cdef uint8_t *take_staging(kr_window *w, int64_t capacity, const uint8_t *kept, int64_t size) noexcept:
    cdef Input owner = <Input>w.owner
    cdef Arena fresh
    try:
        fresh = Arena(capacity + KR_WINDOW_SPARE)
    except MemoryError as error:
        owner.error = error
        return NULL
    if size:
        memcpy(fresh.data, kept, size)
    owner.staging = fresh
    w.block = fresh.data
    w.capacity = capacity
    return w.block


cdef int64_t fill_window(kr_window *w, uint8_t *target, int64_t start, int64_t size) noexcept nogil:
    with gil:
        return read_object(w, target, start, size)


cdef int64_t read_object(kr_window *w, uint8_t *target, int64_t start, int64_t size) noexcept:
    cdef Input owner = <Input>w.owner
    try:
        owner.file.read_into(PyMemoryView_FromMemory(<char *>target, size, PyBUF_WRITE), start)
    except BaseException as error:  # raised again when the walk has ended
        owner.error = error
        position = getattr(error, "position", None)  # of an InputError
        done = position - start if isinstance(position, int) else 0
        return done if 0 < done < size else 0
    return size


cdef kr_block_pool *shared_pool() noexcept:
    """The pool of all extension modules: each hands it to ``kr_pool_use``."""
    return &kr_own_pool


cdef class Arena:
    """A writable block of memory; slices of ``memoryview(arena)`` keep it alive."""

    def __cinit__(self, int64_t size):
        self.size = size
        self.block = kr_block_open(size, 0)
        if self.block == NULL:
            raise MemoryError(f"no memory for {size} bytes")
        self.data = kr_block_bytes(self.block)

    @staticmethod
    cdef Arena of(kr_block *block, void *data, int64_t size):
        """A part of a block that has other owners, too."""
        cdef Arena arena = Arena.__new__(Arena, 0)
        kr_block_close(arena.block)
        arena.block = kr_block_share(block)
        arena.data = <uint8_t *>data
        arena.size = size
        return arena

    def __dealloc__(self):
        kr_block_close(self.block)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 0, flags)
