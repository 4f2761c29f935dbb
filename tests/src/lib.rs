//! Cluster stories over real processes.
