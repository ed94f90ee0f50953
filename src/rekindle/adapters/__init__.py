"""Other frameworks' agents on this store. Each adapter is a room of its own, and imports its framework when it is used."""
