"""Typed messages as JSON: owns the memory that native/c/message/json.h fills, and releases the GIL around it."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kraftlog._native.c_memory cimport kr_pool_use
from kraftlog._native.c_message cimport (
    kr_growing,
    kr_growing_free,
    kr_json_printer,
    kr_print_message,
    kr_program,
    kr_uuid_text_init,
)
from kraftlog._native.memory cimport shared_pool
from kraftlog._native.message cimport Columns, Grown, Program, Values, faults_of

kr_uuid_text_init()
kr_pool_use(shared_pool())


def write_json(list programs, int columns, Values values, const int32_t[::1] numbers, const int32_t[::1] starts):
    """The JSON of each value, as (ends, data, faults).

    ``numbers`` says which of the programs a value's message is of; those with a number below zero are left empty.
    """
    cdef Columns scratch = Columns(columns, True)
    cdef kr_growing out
    cdef kr_json_printer json
    cdef int64_t i, n = values.count
    cdef int32_t number, last = -1
    cdef const uint8_t *begin
    cdef const uint8_t *end
    cdef kr_program *of_numbers
    if numbers.shape[0] != n or starts.shape[0] != n:
        raise ValueError("a number and a start are needed for each value")
    for program in programs:
        if program.columns > columns:
            raise ValueError("too few columns for a program")
    if n and np.max(numbers) >= len(programs):
        raise ValueError("a number is not one of a program")
    ends = np.zeros(n + 1, np.int32)
    cdef int32_t[::1] ends_view = ends
    memset(&out, 0, sizeof(out))
    json.d = &scratch.state
    json.out = &out
    of_numbers = <kr_program *>calloc(max(len(programs), 1), sizeof(kr_program))
    if of_numbers == NULL:
        raise MemoryError("no memory for programs")
    try:
        for i in range(len(programs)):
            of_numbers[i] = (<Program>programs[i]).program
        with nogil:
            for i in range(n):
                number = numbers[i]
                begin = values.values.data + values.values.ends[i]
                end = values.values.data + values.values.ends[i + 1]
                if number >= 0 and end - begin >= starts[i]:
                    if number != last:
                        scratch.state.program = of_numbers[number]
                        last = number
                    kr_print_message(&json, begin, begin + starts[i], end, i)
                    if scratch.state.no_memory:
                        break
                ends_view[i + 1] = <int32_t>out.size
        if scratch.state.no_memory:
            raise MemoryError("no memory for JSON, or more than 2 GiB of it")
        return ends, Grown.take(&out), faults_of(&scratch.state)
    finally:
        free(of_numbers)
        kr_growing_free(&out)
