"""`wirebroker kafka-dump-log`: files of a partition, without a cluster."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.base.text import lower_camel_case
from wirebroker.cli.kafka.plumbing.script import ScriptCommand, version_flag
from wirebroker.cli.plumbing.output import Printer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.cli.kafka.formatters.record_json import RecordForm
    from wirebroker.inspect.rows.rows import Row

# By suffix, as in Kafka's tool.
_LOGS: Final = frozenset({".log", ".checkpoint"})
_INDEXES: Final = frozenset({".index", ".timeindex"})
_DECODERS: Final = "org.apache.kafka.tools.api."
_STRING: Final = f"{_DECODERS}StringDecoder"
# Sizes in bytes.
_NUMBERS: Final = {f"{_DECODERS}IntegerDecoder": 4, f"{_DECODERS}LongDecoder": 8}
_KNOWN: Final = _LOGS | _INDEXES | {".txnindex", ".snapshot"}


_decoder_option = partial(
    click.option,
    is_flag=False,
    flag_value=_STRING,
    default=_STRING,
    type=click.Choice([_STRING, *_NUMBERS]),
    metavar="[CLASS]",
)


@click.command(cls=ScriptCommand)
@click.option("--files", required=True, metavar="FILE,...", help="Files to print.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values.")
@click.option("--deep-iteration", is_flag=True, help="Print records, not only batches.")
@click.option("--skip-record-metadata", is_flag=True, help="Print only keys and values of records.")
@click.option(
    "--cluster-metadata-decoder", is_flag=True, help="Decode records of the metadata log."
)
@click.option("--offsets-decoder", is_flag=True, help="Decode records of consumer groups.")
@click.option("--transaction-log-decoder", is_flag=True, help="Decode transaction states.")
@click.option("--share-group-state-decoder", is_flag=True, help="Decode states of share groups.")
@_decoder_option("--key-decoder-class", help="Kafka class that decodes keys.")
@_decoder_option("--value-decoder-class", help="Kafka class that decodes values.")
@click.option("--index-sanity-check", is_flag=True, help="Only check the indexes.")
@click.option("--verify-index-only", is_flag=True, help="Verify the indexes without printing them.")
@click.option("--max-message-size", "_", type=int, multiple=True, expose_value=False, hidden=True)
@click.option("--max-bytes", type=int, metavar="N", hidden=True)
@version_flag
def kafka_dump_log(
    *,
    files: str,
    print_data_log: bool,
    deep_iteration: bool,
    skip_record_metadata: bool,
    cluster_metadata_decoder: bool,
    offsets_decoder: bool,
    transaction_log_decoder: bool,
    share_group_state_decoder: bool,
    key_decoder_class: str,
    value_decoder_class: str,
    index_sanity_check: bool,
    verify_index_only: bool,
    max_bytes: int | None,
) -> int:
    """Print the contents of a partition's files, as kafka-dump-log.sh.

    Metadata records are printed as JSON, with the field names of `wirebroker dump`.
    """
    forms = _record_forms(
        offsets=offsets_decoder,
        transactions=transaction_log_decoder,
        share_states=share_group_state_decoder and not cluster_metadata_decoder,
    )
    decodes_metadata = cluster_metadata_decoder and forms is None
    prints_data = print_data_log or decodes_metadata or forms is not None
    is_deep = deep_iteration or prints_data or skip_record_metadata
    form = _Form(
        prints_data=prints_data,
        skips_metadata=skip_record_metadata,
        decodes_metadata=decodes_metadata,
        forms=forms,
        key_class=key_decoder_class,
        value_class=value_decoder_class,
    )
    printer = Printer()
    is_sound = True
    with printer:
        for path in files.split(","):
            printer.line(f"Dumping {path}")
            if Path(path).suffix not in _KNOWN:
                click.echo(f"Ignoring unknown file {path}", err=True)
                continue
            quiet = Path(path).suffix in _INDEXES and (index_sanity_check or verify_index_only)
            faults = False
            for row in _rows(path, is_deep=is_deep, most_bytes=max_bytes):
                if row["type"] == "damage":
                    click.echo(f"{path}: {row['message']} at {row['position']}", err=True)
                    faults = True
                elif not quiet:
                    for line in form.lines_of(row, path):
                        printer.line(line)
            if quiet and index_sanity_check and not faults:
                printer.line(f"{path} passed sanity check.")
            is_sound = is_sound and not faults
    return 0 if is_sound else 1


def _record_forms(
    *, offsets: bool, transactions: bool, share_states: bool
) -> Mapping[int, RecordForm] | None:
    """Return the forms of the records of a coordinator's topic; the first one chosen counts."""
    if not (offsets or transactions or share_states):
        return None
    from wirebroker.cli.kafka.formatters import record_json  # noqa: PLC0415 - for few

    if offsets:
        return record_json.OFFSET_TOPIC_FORMS
    return record_json.TRANSACTION_FORMS if transactions else record_json.SHARE_STATE_FORMS


def _rows(path: str, *, is_deep: bool, most_bytes: int | None) -> Iterator[Row]:
    from wirebroker.inspect.rows.dump import DumpOptions, dump  # noqa: PLC0415 - 20 ms, after --help
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles  # noqa: PLC0415

    options = DumpOptions(shows_records=is_deep, opens_compressed=is_deep)
    has_entries = False
    for row in dump(ReadOnlyFiles(), [path], options, lambda _: None):
        if row["type"] == "batch" and most_bytes is not None and row["position"] >= most_bytes:
            return
        has_entries = has_entries or row["type"] != "file"
        yield row
    if not has_entries and path.endswith(".index"):
        # Kafka's tool prints this for the first zeros of an index.
        yield {"type": "offset_index_entry", "offset": int(Path(path).stem), "position": 0}


class _Form:
    def __init__(
        self,
        *,
        prints_data: bool,
        skips_metadata: bool,
        decodes_metadata: bool,
        forms: Mapping[int, RecordForm] | None,
        key_class: str,
        value_class: str,
    ) -> None:
        self._prints_data = prints_data
        self._skips_metadata = skips_metadata
        self._decodes_metadata = decodes_metadata
        self._forms = forms
        self._key_class = key_class
        self._value_class = value_class
        self._batch: Row = {}

    def lines_of(self, row: Row, path: str) -> Iterator[str]:
        match row["type"]:
            case "file" if Path(path).suffix in _LOGS:
                yield f"Log starting offset: {int(Path(path).stem.partition('-')[0])}"
            case "batch":
                self._batch = row
                yield _batch_line(row)
            case "record":
                yield self._record_line(row)
            case "offset_index_entry":
                yield f"offset: {row['offset']} position: {row['position']}"
            case "time_index_entry":
                yield f"timestamp: {row['timestamp']} offset: {row['offset']}"
            case "aborted_transaction":
                yield (
                    f"version: {row['version']} producerId: {row['producer_id']} firstOffset:"
                    f" {row['first_offset']} lastOffset: {row['last_offset']} lastStableOffset:"
                    f" {row['last_stable_offset']}"
                )
            case "producer":
                yield " ".join(f"{lower_camel_case(name)}: {value}" for name, value in row.items())
            case _:
                pass

    def _record_line(self, row: Row) -> str:
        pieces: list[str] = []
        if not self._skips_metadata:
            pieces.append(
                f"offset: {row['offset']} {self._batch['timestamp_type']}: {row['timestamp']}"
                f" keySize: {row['key_size']} valueSize: {row['value_size']}"
                f" sequence: {row['sequence']}"
                f" headerKeys: [{','.join(_text(header['key']) for header in row['headers'])}]"
            )
        decoded: dict[str, Any] | None = row.get("decoded")
        if self._batch["is_control"] and decoded is not None:
            pieces.append(_control(decoded))
        elif self._forms is not None:
            pieces += _internal(self._forms, row)
        elif self._decodes_metadata and decoded is not None:
            from wirebroker.inspect.rows.json_lines import plain_json  # noqa: PLC0415 - for few

            pieces.append(f"payload: {json.dumps(plain_json(decoded))}")
        elif self._prints_data:
            if row["key"] is not None:
                pieces.append(f"key: {_text(row['key'], self._key_class)}")
            if row["value"] is not None:
                pieces.append(f"payload: {_text(row['value'], self._value_class)}")
        return "| " + " ".join(pieces)


def _batch_line(row: Row) -> str:
    horizon = f"OptionalLong[{row['base_timestamp']}]"
    fields = {
        "baseOffset": row["base_offset"],
        "lastOffset": row["last_offset"],
        "count": row["record_count"],
        "baseSequence": row["base_sequence"],
        "lastSequence": row["last_sequence"],
        "producerId": row["producer_id"],
        "producerEpoch": row["producer_epoch"],
        "partitionLeaderEpoch": row["leader_epoch"],
        "isTransactional": str(row["is_transactional"]).lower(),
        "isControl": str(row["is_control"]).lower(),
        "deleteHorizonMs": horizon if row["has_delete_horizon"] else "OptionalLong.empty",
        "position": row["position"],
        row["timestamp_type"]: row["max_timestamp"],
        "size": row["size"],
        "magic": row["magic"],
        "compresscodec": row["compression_type"],
        "crc": row["crc"],
        "isvalid": str(row["is_valid_crc"]).lower(),
    }
    return " ".join(f"{name}: {value}" for name, value in fields.items())


def _internal(forms: Mapping[int, RecordForm], row: Row) -> Iterator[str]:
    from wirebroker.cli.kafka.formatters.dumped_records import dumped  # noqa: PLC0415 - for few

    if row["key"] is None:
        raise click.UsageError(
            f"Failed to decode message at offset {row['offset']} using the specified decoder"
            " (message had a missing key)"
        )
    return dumped(forms, row["offset"], row["key"], row["value"])


def _control(decoded: dict[str, Any]) -> str:
    kind = decoded.get("control_type", "UNKNOWN")
    if "coordinator_epoch" in decoded:
        return f"endTxnMarker: {kind} coordinatorEpoch: {decoded['coordinator_epoch']}"
    return f"controlType: {kind}"


def _text(data: bytes, decoder: str = _STRING) -> str:
    """Return bytes as Kafka's decoder prints them; raise UsageError if they are too few."""
    size = _NUMBERS.get(decoder)
    if size is None:
        return data.decode(errors="replace")
    if len(data) < size:
        raise click.UsageError(f"{decoder} needs {size} bytes, but a record has {len(data)}")
    return str(int.from_bytes(data[:size], "big", signed=True))
