/* Where the fields of a record batch's header stand: records/layout.py's numbers under its names.
 *
 * tests/unit/codecs/records/test_layout.py compares the two; nothing else in C may write such a number. */

enum {
    BASE_OFFSET_AT = 0,
    LENGTH_AT = 8,
    LEADER_EPOCH_AT = 12,
    MAGIC_AT = 16,
    CRC_AT = 17,
    ATTRIBUTES_AT = 21,
    LAST_OFFSET_DELTA_AT = 23,
    BASE_TIMESTAMP_AT = 27,
    MAX_TIMESTAMP_AT = 35,
    PRODUCER_ID_AT = 43,
    PRODUCER_EPOCH_AT = 51,
    BASE_SEQUENCE_AT = 53,
    RECORD_COUNT_AT = 57,
    HEADER_BYTES = 61,
    OVERHEAD_BYTES = 12,
    CRC_START = 21,
    FLAGS_AT = 22,
    MAGIC = 2,
    CODEC_MASK = 0x07,
};
