data convert data/damaged.tfrecord @TMP/x
data inspect @TMP/x.tfrecord
