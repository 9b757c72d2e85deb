"""TFRecord files and Examples, written by TensorFlow and read by Lockstep and the other way
round: usage: tensorflow_records.py INTEROP_RECORDS. Exit status 77: there is no TensorFlow."""
import os
import random
import struct
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
try:
    import tensorflow as tf
except ImportError as e:
    print("SKIPPED: this Python has no TensorFlow (%s); `make interop` installs it" % e)
    sys.exit(77)

TOOL = sys.argv[1]
CHECKS = 0


def run(*args, text=None):
    done = subprocess.run([TOOL, *args], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s failed: %s" % (args[0], done.stderr))
    return done.stdout


def check(what, ours, theirs):
    global CHECKS
    CHECKS += 1
    if ours != theirs:
        sys.exit("%s differs:\n  Lockstep   %r\n  TensorFlow %r" % (what, ours, theirs))


def random_bytes(rng, most):
    return bytes(rng.randrange(4) for _ in range(rng.randrange(most)))


def records(folder, rng):
    for compression in ("", "ZLIB", "GZIP"):
        for count in (0, 1, 50):
            path = os.path.join(folder, "%s-%d" % (compression, count))
            rows = [random_bytes(rng, 5000) for _ in range(count)]
            with tf.io.TFRecordWriter(path, compression) as w:
                for row in rows:
                    w.write(row)
            ours = [bytes.fromhex(x) for x in run("dump", path, compression).splitlines()]
            check("reading " + path, ours, rows)
            run("write", path, compression, text="".join(r.hex() + "\n" for r in rows))
            read = tf.data.TFRecordDataset([path], compression_type=compression)
            check("writing " + path, rows, [r for r in read.as_numpy_iterator()])
            if compression == "":
                with open(path, "rb") as f:
                    mine = f.read()
                with tf.io.TFRecordWriter(path) as w:
                    for row in rows:
                        w.write(row)
                with open(path, "rb") as f:
                    check("the bytes of " + path, mine, f.read())


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def feature(kind, values):
    if kind == "i":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if kind == "f":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def values(rng, kind, n):
    if kind == "i":
        return [rng.choice([0, 1, -1, 300, 2**63 - 1, -2**63, rng.randrange(2**40)])
                for _ in range(n)]
    if kind == "f":
        return [f32(rng.choice([0.0, -0.5, 1e30, rng.random()])) for _ in range(n)]
    return [random_bytes(rng, 20) for _ in range(n)]


def words(kind, vs):
    if kind == "i":
        return " ".join(str(v) for v in vs)
    if kind == "f":
        return " ".join(v.hex() for v in vs)
    return " ".join(v.hex() or "-" for v in vs)


def random_example(rng):
    made = {}
    if rng.random() < 0.8:
        made["fixed_i"] = ("i", values(rng, "i", 2))
    made["fixed_f"] = ("f", values(rng, "f", 4))
    made["fixed_b"] = ("b", values(rng, "b", 1))
    for kind in "ifb":
        if rng.random() < 0.8:
            made["var_" + kind] = (kind, values(rng, kind, rng.randrange(5)))
        if rng.random() < 0.8:
            n = 2 * rng.randrange(3)
            made["seq_" + kind] = (kind, values(rng, kind, n))
    made["unknown"] = ("i", [1, 2, 3])
    if rng.random() < 0.05:
        del made["fixed_f"]
    if rng.random() < 0.05:
        made["fixed_b"] = ("f", [1.0])
    return made


FEATURES = {
    "fixed_i": tf.io.FixedLenFeature([2], tf.int64, [7, 8]),
    "fixed_f": tf.io.FixedLenFeature([2, 2], tf.float32),
    "fixed_b": tf.io.FixedLenFeature([], tf.string),
    "var_i": tf.io.VarLenFeature(tf.int64),
    "var_f": tf.io.VarLenFeature(tf.float32),
    "var_b": tf.io.VarLenFeature(tf.string),
    "seq_i": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True),
    "seq_f": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True,
                                           default_value=-1.0),
    "seq_b": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
}


def tensor_text(name, t):
    a = t.numpy()
    out = "%s %s" % (name, list(a.shape))
    for x in a.reshape(-1).tolist():
        if t.dtype == tf.float32:
            out += " %08x" % struct.unpack("<I", struct.pack("<f", x))[0]
        elif t.dtype == tf.string:
            out += " x" + x.hex()
        else:
            out += " %d" % x
    return out + "\n"


def parsed(serialized):
    try:
        got = tf.io.parse_example(tf.constant(serialized), FEATURES)
    except tf.errors.InvalidArgumentError:
        return "failed INVALID_ARGUMENT\n"
    out = ""
    for name in FEATURES:
        v = got[name]
        if isinstance(v, tf.sparse.SparseTensor):
            for part in ("indices", "values", "dense_shape"):
                out += tensor_text("/%s/%s" % (name, part), getattr(v, part))
        else:
            out += tensor_text("/" + name, v)
    return out


def examples(folder, rng):
    made = [random_example(rng) for _ in range(400)]
    path = os.path.join(folder, "examples")
    text = ""
    for e in made:
        for name, (kind, vs) in e.items():
            text += "%s %s %s\n" % (kind, name, words(kind, vs))
        text += ".\n"
    run("make", path, text=text)
    ours = [r for r in tf.data.TFRecordDataset([path]).as_numpy_iterator()]
    theirs = [tf.train.Example(features=tf.train.Features(feature={
        name: feature(kind, vs) for name, (kind, vs) in e.items()})) for e in made]
    check("the number of examples", len(ours), len(theirs))
    for mine, e in zip(ours, theirs):
        check("an example's bytes", mine, e.SerializeToString(deterministic=True))
    with tf.io.TFRecordWriter(path) as w: # keys in protobuf's own order
        for e in theirs:
            w.write(e.SerializeToString())
    serialized = [e.SerializeToString() for e in theirs]
    for batch in (1, 3, 40):
        want = "".join(parsed(serialized[i:i + batch])
                       for i in range(0, len(serialized), batch))
        check("parsing in batches of %d" % batch,
              run("parse", path, str(batch)).splitlines(), want.splitlines())


def main():
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        records(folder, rng)
        examples(folder, rng)
    print("%d comparisons with TensorFlow %s, none differs" % (CHECKS, tf.__version__))


main()
