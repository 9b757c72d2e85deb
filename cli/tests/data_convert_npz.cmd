data convert data/images.idx @TMP/digits.tfrecord --labels data/labels.idx --compression ZLIB
data inspect @TMP/digits.tfrecord --records 0
data convert @TMP/digits.tfrecord @TMP/digits.npz
data inspect @TMP/digits.npz --records 1
data convert @TMP/digits.npz @TMP/again
data inspect @TMP/again.tfrecord --records 1
