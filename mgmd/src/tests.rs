//! Stories of an in-process server with fake nodes.
