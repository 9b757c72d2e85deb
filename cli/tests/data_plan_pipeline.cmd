data plan data/pipeline.json --workers 2 --steps 2
