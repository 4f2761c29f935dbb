//! Placeholder essay, replaced by the crate's own.
