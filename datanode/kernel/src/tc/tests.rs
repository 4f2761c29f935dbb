//! Stories about TC alone.
