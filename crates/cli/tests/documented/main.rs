//! The documentation is true where a machine can tell: its links lead somewhere, its figures are
//! what the program prints, and each of its blocks says what it is.
//!
//! `--test sessions` runs the commands. The program itself tests that it accepts every `lastmile …`
//! line.

mod classes;
mod figures;
mod install;
mod links;
mod newcomer;
mod pages;
mod regions;
