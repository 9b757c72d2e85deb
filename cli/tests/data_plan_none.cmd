data plan --batch 4
