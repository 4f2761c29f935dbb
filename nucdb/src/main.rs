//! nucdb: the front door.
fn main() {}
