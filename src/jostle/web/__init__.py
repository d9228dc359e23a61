"""The web process: page and API over HTTP, behind one gate. It reads the store, asks the engine, and has no other authority."""
