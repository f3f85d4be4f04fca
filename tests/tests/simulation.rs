//! Placeholder while the simulation is being written.

#[test]
fn it_compiles() {}
