/* What RequestMeter.served does in a compiled build: one call reads the clock and counts a request's
 * time and size in two histograms (integer_histogram.py), for 50 ns. In Python each count of more
 * than 256 is a new object. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <time.h>

/* As in integer_histogram.py. */
enum { SLOTS = 157, SUM = SLOTS - 1 };
static const int64_t LARGEST = ((int64_t)1 << 40) - 1;

static int64_t *slots_of(PyObject *counts)
{
    if (!PyMemoryView_Check(counts) || PyMemoryView_GET_BUFFER(counts)->len != SLOTS * 8) {
        PyErr_SetString(PyExc_TypeError, "the slots of a histogram are needed");
        return NULL;
    }
    return PyMemoryView_GET_BUFFER(counts)->buf;
}

static void record(int64_t *slots, int64_t value)
{
    int64_t kept = value < 0 ? 0 : value > LARGEST ? LARGEST : value;
    int64_t range = kept;
    if (kept >= 4) {
        int bits = 64 - __builtin_clzll((unsigned long long)kept);
        range = (bits - 2) * 4 + (kept >> (bits - 3) & 3);
    }
    slots[range] += 1;
    slots[SUM] += value;
}

static PyObject *count_request(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "the slots of two histograms, each with a value, are needed");
        return NULL;
    }
    int64_t *times = slots_of(arguments[0]);
    int64_t *sizes = slots_of(arguments[2]);
    if (times == NULL || sizes == NULL)
        return NULL;
    double began_s = PyFloat_AsDouble(arguments[1]);
    long long size = PyLong_AsLongLong(arguments[3]);
    if (PyErr_Occurred())
        return NULL;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* time.perf_counter's on Linux */
    double seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - began_s;
    int64_t microseconds = (int64_t)(seconds * 1e6);
    record(times, microseconds);
    record(sizes, size);
    return PyLong_FromLongLong(microseconds);
}

static PyMethodDef methods[] = {
    {"count_request", (PyCFunction)(void (*)(void))count_request, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "wirebroker._histogram", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__histogram(void) { return PyModuleDef_Init(&definition); }
