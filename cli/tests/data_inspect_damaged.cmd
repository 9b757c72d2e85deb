data inspect data/damaged.tfrecord
