"""Other frameworks' agents on this store: an adapter a framework, which is imported when the adapter is."""
