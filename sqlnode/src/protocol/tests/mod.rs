//! The protocol against a toy session: raw packets, broken packets, and the clients people really use.

mod client;
mod clients;
mod fuzz;
mod stories;
mod toy;
