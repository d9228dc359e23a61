"""Hydra's multirun on jostle: `python train.py -m hydra/launcher=jostle lr=1e-3,1e-4` queues each combination as a job."""
