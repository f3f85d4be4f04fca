//! The documentation is true where a machine can tell: its commands run as pasted, its links lead
//! somewhere.
//!
//! A binary of its own because the commands use the default ports, as their readers do: cargo runs one
//! test binary after the other, and here one test runs all pages, one after the other. Whether every
//! `lastmile …` line is one that the program accepts is tested in the program itself.

mod classes;
mod figures;
mod install;
mod links;
mod newcomer;
mod pages;
mod sessions;
