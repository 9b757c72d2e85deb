data plan --files data/lines*.txt --batch 4 --workers 2 --replicas 2
