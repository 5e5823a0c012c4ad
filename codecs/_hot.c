/* What runs for every Produce, in C: records/plain_batch.py, records/walk.py, hot/repeated_frame.py;
 * and records/columns.py, which reads whole logs.
 *
 * Those say what each function means and are the reference; the same tests run over both.
 * Every read is within the buffer, whose length is checked first. The checksum of short batches is
 * computed here where the processor has an instruction for it; else by checksum.py's crc32c, whose
 * call alone would cost as much as the rest. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_layout.h"

enum {
    FIELDS = 13,
    SMALLEST_RECORD_BYTES = 7,
    PLAIN_ATTRIBUTES = 0x17,
    LAST_CODEC = 4,
    SAME_START = 8,
    MOST_PARTITIONS = 100,
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
        return short_crc(p + CRC_START, size - CRC_START) == get32(p + CRC_AT);
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
    return crc == get32(p + CRC_AT);
}

static int is_plain(const uint8_t *p, Py_ssize_t size)
{
    int16_t attributes = (int16_t)get16(p + ATTRIBUTES_AT);
    int64_t last_offset_delta = (int32_t)get32(p + LAST_OFFSET_DELTA_AT);
    int64_t producer_id = (int64_t)get64(p + PRODUCER_ID_AT);
    int32_t base_sequence = (int32_t)get32(p + BASE_SEQUENCE_AT);
    int64_t count = (int32_t)get32(p + RECORD_COUNT_AT);
    return (int64_t)(int32_t)get32(p + LENGTH_AT) + OVERHEAD_BYTES == size &&
           p[MAGIC_AT] == MAGIC && get64(p + BASE_OFFSET_AT) == 0 && count > 0 && last_offset_delta + 1 == count &&
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
        (int64_t)get64(p + BASE_OFFSET_AT),
        (int32_t)get32(p + LENGTH_AT),
        (int32_t)get32(p + LEADER_EPOCH_AT),
        (int8_t)p[MAGIC_AT],
        get32(p + CRC_AT),
        (int16_t)get16(p + ATTRIBUTES_AT),
        (int32_t)get32(p + LAST_OFFSET_DELTA_AT),
        (int64_t)get64(p + BASE_TIMESTAMP_AT),
        (int64_t)get64(p + MAX_TIMESTAMP_AT),
        (int64_t)get64(p + PRODUCER_ID_AT),
        (int16_t)get16(p + PRODUCER_EPOCH_AT),
        (int32_t)get32(p + BASE_SEQUENCE_AT),
        (int32_t)get32(p + RECORD_COUNT_AT),
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

#include "_record_walk.h"
#include "_record_columns.h"

static PyObject *checked_header(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "checked_header(records, is_walked)");
        return NULL;
    }
    PyObject *records = arguments[0];
    int is_walked = PyObject_IsTrue(arguments[1]);
    Py_buffer view;
    if (is_walked < 0 || PyObject_GetBuffer(records, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *p = view.buf;
    PyObject *result = NULL;
    int is_right = 0;
    if (view.len >= HEADER_BYTES && is_plain(p, view.len))
        is_right = crc_is_right(records, p, view.len);
    if (is_right > 0 && is_walked && !(p[FLAGS_AT] & CODEC_MASK)) {
        if (view.len >= LARGE_BYTES) {
            Py_BEGIN_ALLOW_THREADS
            is_right = walks_plainly(p, view.len);
            Py_END_ALLOW_THREADS
        } else {
            is_right = walks_plainly(p, view.len);
        }
    }
    if (is_right > 0)
        result = header_of(p);
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
    put64((uint8_t *)view.buf + BASE_OFFSET_AT, (uint64_t)base_offset);
    put32((uint8_t *)view.buf + LEADER_EPOCH_AT, (uint32_t)leader_epoch);
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

/* Finds a partition's records behind its index at `at`; returns 0 if they are no single batch.
 * `end` is where partitions may go to; in a flexible frame two bytes more can be read. */
static int find_records(const uint8_t *p, Py_ssize_t end, Py_ssize_t at, int is_flexible,
                        Py_ssize_t *start, Py_ssize_t *stop)
{
    Py_ssize_t length;
    if (end - at < 4 + 1 + HEADER_BYTES)
        return 0;
    if (is_flexible) {
        length = p[at + 4] & 0x7F;
        *start = at + 5;
        for (int shift = 7; p[*start - 1] & 0x80; shift += 7, ++*start) {
            if (shift > 14)
                return 0;
            length |= (Py_ssize_t)(p[*start] & 0x7F) << shift;
        }
        length -= 1;
    } else {
        length = (int32_t)get32(p + at + 4);
        *start = at + 8;
    }
    if (length < HEADER_BYTES || length > end - *start - is_flexible)
        return 0;
    *stop = *start + length;
    return !(is_flexible && p[*stop]) &&
           (int64_t)(int32_t)get32(p + *start + LENGTH_AT) + OVERHEAD_BYTES == length &&
           p[*start + MAGIC_AT] == MAGIC;
}

static PyObject *part_of(PyObject *frame, const uint8_t *p, Py_ssize_t at, Py_ssize_t start,
                         Py_ssize_t stop)
{
    PyObject *records = PySequence_GetSlice(frame, start, stop);
    PyObject *part = records ? PyTuple_New(3) : NULL;
    if (part == NULL) {
        Py_XDECREF(records);
        return NULL;
    }
    PyObject *index = PyLong_FromLong((int32_t)get32(p + at));
    PyTuple_SET_ITEM(part, 0, index);
    PyTuple_SET_ITEM(part, 1, records);
    PyTuple_SET_ITEM(part, 2, PyLong_FromLong(p[start + FLAGS_AT])); /* small, so it is there */
    if (index == NULL)
        Py_CLEAR(part);
    return part;
}

/* Returns the partitions from `at` on; None if they are not laid out as they should. */
static PyObject *parts_of(PyObject *frame, const uint8_t *p, Py_ssize_t size, Py_ssize_t at,
                          int is_flexible)
{
    Py_ssize_t end = size, count, start, stop;
    if (is_flexible) {
        end -= 2;
        count = p[at] - 1;
        at += 1;
        if (p[end] || p[end + 1])
            Py_RETURN_NONE;
    } else {
        count = (int32_t)get32(p + at);
        at += 4;
    }
    if (count <= 0 || count > MOST_PARTITIONS)
        Py_RETURN_NONE;
    PyObject *parts = PyList_New(0);
    for (; parts != NULL && count > 0; count--) {
        if (!find_records(p, end, at, is_flexible, &start, &stop))
            break;
        PyObject *part = part_of(frame, p, at, start, stop);
        if (part == NULL || PyList_Append(parts, part) < 0)
            Py_CLEAR(parts);
        Py_XDECREF(part);
        at = stop + is_flexible;
    }
    if (parts != NULL && (count > 0 || at != end)) {
        Py_DECREF(parts);
        Py_RETURN_NONE;
    }
    return parts;
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
    Py_ssize_t at = SAME_START + same_bytes;
    PyObject *result = NULL;
    if (view.len >= at + HEADER_BYTES && !memcmp(p, PyBytes_AS_STRING(arguments[1]), 4) &&
        !memcmp(p + SAME_START, PyBytes_AS_STRING(arguments[2]), (size_t)same_bytes)) {
        result = parts_of(arguments[0], p, view.len, at, is_flexible);
        if (result != NULL && result != Py_None)
            result = Py_BuildValue("(iN)", (int32_t)get32(p + 4), result);
    } else {
        result = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&view);
    return result;
}

static PyMethodDef methods[] = {
    {"checked_header", (PyCFunction)(void (*)(void))checked_header, METH_FASTCALL, NULL},
    {"place", (PyCFunction)(void (*)(void))place, METH_FASTCALL, NULL},
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
    crc32c = attribute_of("wirebroker.codecs.records.checksum", "crc32c");
    PyObject *type = crc32c ? attribute_of("wirebroker.codecs.records.batch", "BatchHeader") : NULL;
    if (type == NULL)
        return NULL;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "BatchHeader is no tuple");
        return NULL;
    }
    header_type = (PyTypeObject *)type;
    PyObject *module = PyModule_Create(&definition);
    PyObject *walker = module ? PyType_FromSpec(&walker_spec) : NULL;
    if (walker == NULL || PyModule_AddObjectRef(module, "RecordWalker", walker) < 0)
        Py_CLEAR(module);
    Py_XDECREF(walker);
    PyObject *columns = module ? PyType_FromSpec(&columns_spec) : NULL;
    if (columns == NULL || PyModule_AddObjectRef(module, "RecordColumns", columns) < 0)
        Py_CLEAR(module);
    Py_XDECREF(columns);
    return module;
}
