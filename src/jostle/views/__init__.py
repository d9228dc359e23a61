"""What people look at, as values: from store and engine, without words or layout. Faces draw them; plain, they are --json."""
