bench collective --ranks 2 --filter GiB
