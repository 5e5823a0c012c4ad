/* What runs for every Produce, in C: plain_batch.py and repeated_frame.py in a compiled build.
 *
 * Those two say what each function means and are the reference; the same tests run over both.
 * Every read is within the buffer, whose length is checked first. The checksum of short batches is
 * computed here where the processor has an instruction for it; else by checksum.py's crc32c, whose
 * call alone would cost as much as the rest. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum {
    HEADER_BYTES = 61,
    OVERHEAD_BYTES = 12,
    CRC_START = 21,
    FIELDS = 13,
    SMALLEST_RECORD_BYTES = 7,
    PLAIN_ATTRIBUTES = 0x17,
    CODEC_MASK = 7,
    LAST_CODEC = 4,
    SAME_START = 8,
    /* Up to here one instruction after the other is as fast as the library's three chains. */
    SHORT_BYTES = 1024,
};

static PyTypeObject *header_type; /* BatchHeader, a tuple of FIELDS numbers */
static PyObject *crc32c;

static inline uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static inline uint32_t get32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

static inline uint64_t get64(const uint8_t *p) { return (uint64_t)get32(p) << 32 | get32(p + 4); }

static inline void put32(uint8_t *p, uint32_t value)
{
    for (int index = 3; index >= 0; index--, value >>= 8)
        p[index] = (uint8_t)value;
}

static inline void put64(uint8_t *p, uint64_t value)
{
    put32(p, (uint32_t)(value >> 32));
    put32(p + 4, (uint32_t)value);
}

#if defined(__x86_64__) && defined(__GNUC__)
static int has_instruction;

__attribute__((target("sse4.2"))) static uint32_t short_crc(const uint8_t *p, Py_ssize_t count)
{
    uint64_t crc = 0xFFFFFFFFu;
    for (; count >= 8; count -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    for (; count > 0; count--, p++)
        crc = __builtin_ia32_crc32qi((uint32_t)crc, *p);
    return ~(uint32_t)crc;
}
#else
enum { has_instruction = 0 };

static uint32_t short_crc(const uint8_t *p, Py_ssize_t count)
{
    (void)p, (void)count;
    return 0;
}
#endif

/* Returns 1 if the batch's CRC is right, 0 if not, -1 with an exception set. */
static int crc_is_right(PyObject *records, const uint8_t *p, Py_ssize_t size)
{
    if (has_instruction && size <= SHORT_BYTES)
        return short_crc(p + CRC_START, size - CRC_START) == get32(p + 17);
    PyObject *covered = PySequence_GetSlice(records, CRC_START, size);
    if (covered == NULL)
        return -1;
    PyObject *found = PyObject_CallOneArg(crc32c, covered);
    Py_DECREF(covered);
    if (found == NULL)
        return -1;
    unsigned long crc = PyLong_AsUnsignedLong(found);
    Py_DECREF(found);
    if (crc == (unsigned long)-1 && PyErr_Occurred())
        return -1;
    return crc == get32(p + 17);
}

static int is_plain(const uint8_t *p, Py_ssize_t size)
{
    int16_t attributes = (int16_t)get16(p + 21);
    int64_t last_offset_delta = (int32_t)get32(p + 23);
    int64_t producer_id = (int64_t)get64(p + 43);
    int32_t base_sequence = (int32_t)get32(p + 53);
    int64_t count = (int32_t)get32(p + 57);
    return (int64_t)(int32_t)get32(p + 8) + OVERHEAD_BYTES == size && p[16] == 2 &&
           get64(p) == 0 && count > 0 && last_offset_delta + 1 == count &&
           !(attributes & ~PLAIN_ATTRIBUTES) && (attributes & CODEC_MASK) <= LAST_CODEC &&
           !(base_sequence < 0 && producer_id >= 0) &&
           count * SMALLEST_RECORD_BYTES <= size - HEADER_BYTES;
}

/* Returns a header whose fields are still to be set. */
static PyObject *new_header(void)
{
    PyObject *header = header_type->tp_alloc(header_type, FIELDS);
#if PY_VERSION_HEX >= 0x030E0000
    if (header != NULL)
        ((PyTupleObject *)header)->ob_hash = -1; /* not computed yet */
#endif
    return header;
}

static PyObject *header_of(const uint8_t *p)
{
    PyObject *header = new_header();
    if (header == NULL)
        return NULL;
    int64_t fields[FIELDS] = {
        (int64_t)get64(p),           (int32_t)get32(p + 8),       (int32_t)get32(p + 12),
        (int8_t)p[16],               get32(p + 17),               (int16_t)get16(p + 21),
        (int32_t)get32(p + 23),      (int64_t)get64(p + 27),      (int64_t)get64(p + 35),
        (int64_t)get64(p + 43),      (int16_t)get16(p + 51),      (int32_t)get32(p + 53),
        (int32_t)get32(p + 57),
    };
    for (int index = 0; index < FIELDS; index++) {
        PyObject *number = PyLong_FromLongLong(fields[index]);
        if (number == NULL) {
            Py_DECREF(header);
            return NULL;
        }
        PyTuple_SET_ITEM(header, index, number);
    }
    return header;
}

static PyObject *checked_header(PyObject *module, PyObject *records)
{
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(records, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *result = NULL;
    int is_right = 0;
    if (view.len >= HEADER_BYTES && is_plain(view.buf, view.len))
        is_right = crc_is_right(records, view.buf, view.len);
    if (is_right > 0)
        result = header_of(view.buf);
    else if (is_right == 0)
        result = Py_NewRef(Py_None);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *place(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 4 || !PyTuple_Check(arguments[1]) || PyTuple_GET_SIZE(arguments[1]) != FIELDS) {
        PyErr_SetString(PyExc_TypeError, "place(records, header, base_offset, leader_epoch)");
        return NULL;
    }
    long long base_offset = PyLong_AsLongLong(arguments[2]);
    if (base_offset == -1 && PyErr_Occurred())
        return NULL;
    long leader_epoch = PyLong_AsLong(arguments[3]);
    if (leader_epoch == -1 && PyErr_Occurred())
        return NULL;
    if (leader_epoch != (int32_t)leader_epoch) {
        PyErr_SetString(PyExc_OverflowError, "the leader epoch is no int32");
        return NULL;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(arguments[0], &view, PyBUF_WRITABLE) < 0)
        return NULL;
    if (view.len < HEADER_BYTES) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "the records are no batch");
        return NULL;
    }
    put64(view.buf, (uint64_t)base_offset);
    put32((uint8_t *)view.buf + OVERHEAD_BYTES, (uint32_t)leader_epoch);
    PyBuffer_Release(&view);
    PyObject *header = new_header();
    if (header == NULL)
        return NULL;
    for (int index = 0; index < FIELDS; index++) {
        PyObject *item = PyTuple_GET_ITEM(arguments[1], index);
        if (index == 0)
            item = arguments[2];
        else if (index == 2)
            item = arguments[3];
        PyTuple_SET_ITEM(header, index, Py_NewRef(item));
    }
    return header;
}

/* Finds the records behind the length at `at`; returns 0 if they are not laid out as they should. */
static int find_records(const uint8_t *p, Py_ssize_t size, Py_ssize_t at, int is_flexible,
                        Py_ssize_t *start, Py_ssize_t *stop)
{
    Py_ssize_t length;
    *start = at + 4;
    *stop = size;
    if (is_flexible) {
        /* A batch follows, so three bytes of the varint and three of tags are there. */
        *stop -= 3;
        if (p[size - 3] || p[size - 2] || p[size - 1])
            return 0;
        length = p[at] & 0x7F;
        *start = at + 1;
        for (int shift = 7; p[*start - 1] & 0x80; shift += 7, ++*start) {
            if (shift > 14)
                return 0;
            length |= (Py_ssize_t)(p[*start] & 0x7F) << shift;
        }
        length -= 1;
    } else {
        length = (int32_t)get32(p + at);
    }
    return length == *stop - *start && length >= HEADER_BYTES;
}

static PyObject *match(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 4 || !PyBytes_Check(arguments[1]) || PyBytes_GET_SIZE(arguments[1]) != 4 ||
        !PyBytes_Check(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "match(frame, head, same, is_flexible)");
        return NULL;
    }
    int is_flexible = PyObject_IsTrue(arguments[3]);
    Py_buffer view;
    if (is_flexible < 0 || PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *p = view.buf;
    Py_ssize_t same_bytes = PyBytes_GET_SIZE(arguments[2]);
    Py_ssize_t at = SAME_START + same_bytes, start, stop;
    PyObject *result = NULL;
    if (view.len >= at + HEADER_BYTES && !memcmp(p, PyBytes_AS_STRING(arguments[1]), 4) &&
        !memcmp(p + SAME_START, PyBytes_AS_STRING(arguments[2]), (size_t)same_bytes) &&
        find_records(p, view.len, at, is_flexible, &start, &stop)) {
        int32_t correlation_id = (int32_t)get32(p + 4);
        result = Py_BuildValue("(innB)", correlation_id, start, stop, p[start + 22]);
    } else {
        result = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&view);
    return result;
}

static PyObject *fill(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 6 || !PyBytes_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "fill(answer, numbers_at, correlation_id, and 3 numbers)");
        return NULL;
    }
    Py_ssize_t size = PyBytes_GET_SIZE(arguments[0]);
    long long numbers[5]; /* where they stand, the correlation id, the three */
    for (int index = 0; index < 5; index++) {
        numbers[index] = PyLong_AsLongLong(arguments[index + 1]);
        if (numbers[index] == -1 && PyErr_Occurred())
            return NULL;
    }
    if (numbers[0] < 8 || size < 32 || numbers[0] > size - 24) {
        PyErr_SetString(PyExc_ValueError, "the numbers are not within the answer");
        return NULL;
    }
    PyObject *filled = PyBytes_FromStringAndSize(PyBytes_AS_STRING(arguments[0]), size);
    if (filled == NULL)
        return NULL;
    uint8_t *p = (uint8_t *)PyBytes_AS_STRING(filled);
    put32(p + 4, (uint32_t)numbers[1]);
    for (int index = 0; index < 3; index++)
        put64(p + numbers[0] + 8 * index, (uint64_t)numbers[2 + index]);
    return filled;
}

static PyMethodDef methods[] = {
    {"checked_header", checked_header, METH_O, NULL},
    {"place", (PyCFunction)(void (*)(void))place, METH_FASTCALL, NULL},
    {"fill", (PyCFunction)(void (*)(void))fill, METH_FASTCALL, NULL},
    {"match", (PyCFunction)(void (*)(void))match, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *attribute_of(const char *module, const char *name)
{
    PyObject *found = NULL, *imported = PyImport_ImportModule(module);
    if (imported != NULL) {
        found = PyObject_GetAttrString(imported, name);
        Py_DECREF(imported);
    }
    return found;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "wirebroker.codecs._hot", .m_size = -1, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__hot(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    has_instruction = __builtin_cpu_supports("sse4.2");
#endif
    crc32c = attribute_of("wirebroker.codecs.checksum", "crc32c");
    PyObject *type = crc32c ? attribute_of("wirebroker.codecs.record_batch", "BatchHeader") : NULL;
    if (type == NULL)
        return NULL;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "BatchHeader is no tuple");
        return NULL;
    }
    header_type = (PyTypeObject *)type;
    return PyModule_Create(&definition);
}
