"""LangGraph on this store: a checkpoint saver, and a node that saves by the clock."""
