data inspect data/damaged.tfrecord --json --records 0
