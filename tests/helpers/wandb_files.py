"""Reads what wandb writes of an offline run."""

import struct

BLOCK = 32768


def read_records(path):
    """Records of the file: after 7 bytes a log of blocks, as LevelDB's are, of protobuf messages in parts."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, parts = path.read_bytes(), 7, b""
    assert data.startswith(b":W&B")
    while at < len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
        _, length, kind = struct.unpack_from("<IHB", data, at)
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(parts)
            parts = b""
