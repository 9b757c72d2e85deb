data convert data/images.idx @TMP/d --labels data/labels.idx
data convert @TMP/d.tfrecord @TMP/d.csv
data inspect @TMP/d.csv
