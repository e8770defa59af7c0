from libc.stdint cimport int64_t, uint8_t
from cpython.buffer cimport Py_buffer

from kraftlog._native.c_memory cimport kr_block, kr_block_pool, kr_busy, kr_busy_enter


cdef extern from "batch/salvage.h" nogil:
    ctypedef struct kr_salvage:
        int64_t salvaged_at

    kr_salvage kr_salvage_make()


cdef extern from "input/input.h" nogil:
    ctypedef struct kr_input:
        const uint8_t *start
        int64_t size, from_ "from", until, spare
        int (*move)(kr_input *input, int64_t a, int64_t b)
        void *owner
        int64_t ahead, stop, window_bytes, long_batch
        int failed
        kr_salvage *salvage

    kr_input kr_input_make(const uint8_t *start, int64_t size)


cdef extern from "input/file_window.h" nogil:
    enum:
        KR_WINDOW_SPARE

    ctypedef struct kr_window:
        int file
        uint8_t *block
        int64_t capacity, failed_at, failed_end
        uint8_t *(*grow)(kr_window *w, int64_t capacity, const uint8_t *kept, int64_t size)
        int64_t (*fill)(kr_window *w, uint8_t *target, int64_t start, int64_t size)
        void *owner

    int kr_window_move(kr_input *input, int64_t a, int64_t b)


cdef struct kr_lent:
    # in a struct, where the garbage collector does not see it: CPython before 3.12.7 clears a memoryview of a cycle while
    # others use its memory (gh-77894)
    Py_buffer view


cdef class Input:
    cdef kr_lent lent
    cdef const uint8_t *data
    cdef int64_t size
    cdef object file, error
    cdef Arena staging
    cdef kr_window window
    cdef kr_salvage salvage

    cdef kr_input make(self, int64_t stop, bint salvage=*) except *
    cdef object failure(self)


cdef inline int enter(kr_busy *busy, owner) except -1:
    """Makes the owner this thread's alone until kr_busy_leave; a second thread is refused."""
    if not kr_busy_enter(busy):
        raise RuntimeError(f"{type(owner).__name__} is in use by another thread")
    return 0


cdef kr_block_pool *shared_pool() noexcept


cdef class Arena:
    cdef kr_block *block
    cdef uint8_t *data
    cdef int64_t size

    @staticmethod
    cdef Arena of(kr_block *block, void *data, int64_t size)
