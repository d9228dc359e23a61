"""One way in: files and options become batches, of each batch the jobs that are to run, and of those a request to the engine."""
