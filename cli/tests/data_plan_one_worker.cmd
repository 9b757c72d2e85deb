data plan --files data/lines-*.txt --batch 3 --replicas 2 --steps 1
