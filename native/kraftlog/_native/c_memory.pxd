from libc.stdint cimport int64_t, uint8_t


cdef extern from "base/block_pool.h" nogil:
    ctypedef struct kr_block_pool:
        pass

    ctypedef struct kr_block:
        pass

    const int64_t KR_POOL_LARGE

    kr_block_pool kr_own_pool

    void kr_pool_use(kr_block_pool *pool)
    kr_block *kr_block_open(int64_t size, int kind)
    kr_block *kr_block_share(kr_block *block)
    void kr_block_close(kr_block *block)
    uint8_t *kr_block_bytes(kr_block *block)


cdef extern from "base/cache_size.h" nogil:
    int64_t kr_cache_size()


cdef extern from "base/busy.h" nogil:
    ctypedef struct kr_busy:
        pass

    bint kr_busy_enter(kr_busy *busy)
    void kr_busy_leave(kr_busy *busy)
