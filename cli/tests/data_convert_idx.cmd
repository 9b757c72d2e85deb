data convert data/images.idx @TMP/digits --labels data/labels.idx --shards 4
data inspect @TMP/digits-00001-of-00004.tfrecord --json
